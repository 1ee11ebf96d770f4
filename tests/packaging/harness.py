"""The little that tests written in Python share: run_tests() runs the functions test_... of a
module and prints the line that ./dev test counts."""
import os
import subprocess
import sys
import tempfile
import traceback

SOURCE = os.environ.get("PAWL_SOURCE") or os.path.realpath(os.path.join(__file__, "../../.."))
BUILD = os.environ.get("PAWL_BUILD") or os.path.join(SOURCE, "build")


class Skip(Exception):
    """Raised by a test that cannot run here; says why."""


def run(*args, ok=True, **kwargs):
    """Run a command; its output as text. With ok=True it must succeed, with False fail, and with
    None it may do either."""
    done = subprocess.run(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, **kwargs)
    if ok is not None and (done.returncode == 0) != ok:
        raise AssertionError(f"{' '.join(args)}\nended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def tool(name):
    return os.path.join(SOURCE, "tools", name)


def run_tool(name, *args, **kwargs):
    return run(sys.executable, tool(name), *args, **kwargs)


def write(folder, name, text):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    return path


def temporary_folder():
    return tempfile.TemporaryDirectory(prefix="pawl-test-")


def run_tests(names):
    """names: globals() of the test module."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for name, test in list(names.items()):
        if not name.startswith("test_") or not callable(test):
            continue
        try:
            test()
            outcome = "passed"
        except Skip as why:
            outcome = "skipped"
            print(f"{name}: {why}")
        except Exception:  # pylint: disable=broad-except # every failure is one failed test
            outcome = "failed"
            traceback.print_exc()
        counts[outcome] += 1
        print(f"{outcome}: {name}")
        sys.stdout.flush()
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    sys.exit(1 if counts["failed"] else 0)
