"""The little that tests written in Python share: run_tests() runs the functions test_... of a
module and prints the line that ./dev test counts."""
import contextlib
import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

SOURCE = os.environ.get("PAWL_SOURCE") or os.path.realpath(os.path.join(__file__, "../../.."))
BUILD = os.environ.get("PAWL_BUILD") or os.path.join(SOURCE, "build")

sys.path.append(os.path.join(SOURCE, "tests", "lib"))
from server_choice import client_program, server_program  # noqa: E402 pylint: disable=unused-import


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


def die_with_parent():
    """Between fork and exec: whatever happens to the test, what it started ends with it. And it
    can be interrupted, also if the test runs in the background of a script."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def await_true(condition, what, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


@contextlib.contextmanager
def started(*args, **kwargs):
    """A process that ends with the block."""
    process = subprocess.Popen(args, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent, **kwargs)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def redis_server():
    """A private server; gives its URL."""
    server = server_program()
    if server is None:
        raise Skip("no redis-server and no valkey-server here")
    with temporary_folder() as folder:
        path = os.path.join(folder, "redis.sock")
        with started(server, "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder,
                     stdout=subprocess.DEVNULL):
            await_true(lambda: os.path.exists(path), "the socket of the server")
            yield "redis+unix://" + path


def free_ports(count):
    """The first of as many ports in a row that nothing uses now."""
    for first in random.sample(range(20000, 32000), 200):
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
                return first
            except OSError:
                continue
    raise Skip("no free ports in a row")


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
