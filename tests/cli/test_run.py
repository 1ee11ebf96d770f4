#!/usr/bin/env python3
"""pawl run: what the job gets, what comes back, and who else may be in."""
import json
import os
import signal
import subprocess
import time

from clitest import (BUSY, PAWL, UNREACHABLE, USAGE, Redis, alive, await_text, await_true,
                     environment, folder, pawl, read_file, run_tests, start, started)

SHOW = r"""
import json, os, resource, signal, sys
fds = sorted(int(fd) for fd in os.listdir("/proc/self/fd"))
def is_open(fd):
    try:
        os.fstat(fd)
        return True
    except OSError:
        return False
status = dict(line.rstrip("\n").split(":\t", 1) for line in open("/proc/self/status"))
print(json.dumps({
    "env": {k: v for k, v in os.environ.items() if k not in ("_", "LC_CTYPE")},
    "cwd": os.getcwd(), "umask": os.umask(0),
    "fds": [[fd, os.readlink(f"/proc/self/fd/{fd}")] for fd in fds if is_open(fd)
            and not os.readlink(f"/proc/self/fd/{fd}").endswith("/fd")],
    "mask": [status[name] for name in ("SigBlk", "SigIgn")],
    "nice": os.nice(0), "limits": [resource.getrlimit(i) for i in range(16)],
    "stdin": sys.stdin.read(), "argv": sys.argv[1:]}))
"""


def test_the_job_gets_what_it_gets_without_pawl():
    with Redis() as redis, folder() as top:
        env = environment(redis, X="1", EMPTY="")
        extra = os.open("/dev/null", os.O_RDONLY)
        os.set_inheritable(extra, True)
        script = os.path.join(top, "show.py")
        with open(script, "w", encoding="utf-8") as out:
            out.write(SHOW)
        command = ["/usr/bin/python3", "-S", script, "a b", "$HOME", "--", "-x", "é"]

        def before():
            signal.signal(signal.SIGUSR2, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGURG])
            os.umask(0o27)

        def look(*words):
            out = subprocess.Popen([*words, *command], env=env, stdin=subprocess.PIPE,
                                   stdout=open(os.path.join(top, "out"), "w+b"), cwd=top,
                                   close_fds=False, preexec_fn=before)
            out.communicate(b"to the job\n")
            assert out.returncode == 0
            seen = json.loads(read_file(os.path.join(top, "out")))
            seen["fds"] = [[fd, "pipe" if "pipe:" in name else name] for fd, name in seen["fds"]]
            return seen

        plain, wrapped = look(), look(PAWL, "run", "k", "--")
        os.close(extra)
        added = {name: wrapped["env"].pop(name)
                 for name in ("PAWL_KEY", "PAWL_FENCE", "PAWL_OWNER", "PAWL_DEADLINE")}
        assert plain == wrapped, f"\n{plain}\n{wrapped}"
        assert added["PAWL_KEY"] == "k" and int(added["PAWL_FENCE"]) > 0
        assert 86300 < int(added["PAWL_DEADLINE"]) - time.time() < 86402


def test_a_closed_stdin_stays_closed():
    with Redis() as redis:
        for fd in (0, 2):
            line = f'exec {fd}<&-; exec "$@"'
            done = subprocess.run(["sh", "-c", line, "sh", PAWL, "run", "k", "--", "sh", "-c",
                                   f"[ ! -e /proc/self/fd/{fd} ]"], env=environment(redis),
                                  check=False)
            assert done.returncode == 0, fd


def test_exit_codes_are_the_jobs():
    with Redis() as redis:
        for code in (0, 1, 2, 125, 126, 127, 130, 255):
            assert pawl(redis, "run", "k", "--", "sh", "-c", f"exit {code}").code == code
        for sig in ("TERM", "KILL", "SEGV", "USR1"):
            done = pawl(redis, "run", "k", "--", "sh", "-c", f"ulimit -c 0; kill -{sig} $$")
            assert done.code == 128 + getattr(signal, "SIG" + sig), done
        assert redis("EXISTS", "k") == 0


def test_not_found_and_not_executable_as_in_a_shell():
    with Redis() as redis, folder() as top:
        assert pawl(redis, "run", "k", "--", "/does/not/exist").code == 127
        assert pawl(redis, "run", "k", "--", "does-not-exist").code == 127
        assert pawl(redis, "run", "k", "--", top).code == 126
        path = os.path.join(top, "file")
        with open(path, "w", encoding="utf-8") as out:
            out.write("#!/bin/sh\n")
        assert pawl(redis, "run", "k", "--", path).code == 126
        assert redis("EXISTS", "k") == 0


def test_busy_runs_nothing_and_codes_can_be_set():
    with Redis() as redis, folder() as top:
        mark = os.path.join(top, "mark")
        with started(redis, "run", "k", "--", "sleep", "30"):
            await_true(lambda: redis("EXISTS", "k"), "held")
            job = ("k", "--", "touch", mark)
            assert pawl(redis, "run", "-n", *job).code == BUSY
            begun = time.monotonic()
            assert pawl(redis, "run", "--wait", "500ms", *job).code == BUSY
            assert 0.45 < time.monotonic() - begun < 1.5
            assert pawl(redis, "run", "-n", "-E", "75", *job).code == 75
            assert pawl(redis, "run", "-n", "--exit", "lost=9,busy=3", *job).code == 3
            assert pawl(redis, "run", "-n", "--on-busy", "skip", *job).code == 0
            assert pawl(redis, "run", "-n", "-E", "x=1", *job).code == USAGE
        dead = "redis://127.0.0.1:1"
        assert pawl(dead, "run", "--wait", "300ms", *job).code == UNREACHABLE
        assert pawl(dead, "run", "-n", "-E", "unreachable=4", *job).code == 4
        assert not os.path.exists(mark)


def test_one_job_at_a_time():
    with Redis() as redis, folder() as top:
        log = os.path.join(top, "log")
        line = f"echo in >>{log}; sleep 0.02; echo out >>{log}"
        jobs = [start(redis, "run", "k", "--", "sh", "-c", line) for _ in range(12)]
        assert [job.wait(30) for job in jobs] == [0] * 12
        for job in jobs:
            job.communicate()
        assert read_file(log).split() == ["in", "out"] * 12


def test_nested_run_enters_again_and_other_locks_do_not():
    with Redis() as redis:
        inner = '"$0" run -n k -- sh -c \'echo $PAWL_OWNER $PAWL_FENCE\'; echo $PAWL_OWNER ' \
                '$PAWL_FENCE'
        done = pawl(redis, "run", "k", "--", "sh", "-c", inner, PAWL)
        lines = done.out.splitlines()
        assert done.code == 0 and len(lines) == 2 and lines[0] == lines[1], done
        # Through another lock in between, too.
        chain = '"$0" run -n b -- "$0" run -n k -- sh -c \'echo $PAWL_KEY\''
        done = pawl(redis, "run", "k", "--", "sh", "-c", chain, PAWL)
        assert done.code == 0 and done.out == "k\n", done
        done = pawl(redis, "run", "k", "--", PAWL, "run", "-n", "--new-owner", "k", "--", "true")
        assert done.code == BUSY, done
        # Two children of one job exclude each other on a lock that the job does not hold.
        both = '"$0" run -n b -- sleep 1 & sleep 0.4; "$0" run -n b -- true; code=$?; wait; ' \
               'exit $code'
        assert pawl(redis, "run", "k", "--", "sh", "-c", both, PAWL).code == BUSY


def test_the_password_stays_here():
    with Redis("--requirepass", "secret77") as redis:
        url = redis.url.replace("redis+unix://", "redis+unix://:secret77@")
        env = environment(url, THEPASS="secret77")
        done = pawl(None, "run", "--password-env", "THEPASS", "k", "--", "env", env=env)
        assert done.code == 0 and "secret77" not in done.out, done
        assert f"PAWL_URL={redis.url}" in done.out, done
        done = pawl(None, "run", "--pass-url", "k", "--", "env", env=env)
        assert "secret77@" in done.out


def test_odd_names_are_used_literally():
    with Redis() as redis:
        for name in (b"a b", b"q'\"`$(id)", b"l1\nl2", b"%s%n", "ключ-锁-🔒".encode(), b"\xff\xfe",
                     b"-x", b"{}", b"x" * 512):
            env = environment(redis)
            args = [PAWL, "run", "--", name] if name.startswith(b"-") else [PAWL, "run", name]
            done = subprocess.run([*args, "--", "sh", "-c", 'printf %s "$PAWL_KEY"'],
                                  env=env, stdout=subprocess.PIPE, check=False)
            assert done.returncode == 0 and done.stdout == name, (name, done)
        assert pawl(redis, "run", "x" * 513, "--", "true").code == USAGE


def test_background_processes_are_stopped_before_the_release():
    with Redis() as redis, folder() as top:
        pids = os.path.join(top, "pids")
        line = f"sleep 300 & echo $! >>{pids}; setsid sleep 300 & echo $! >>{pids}; " \
               f"(sleep 300 & echo $! >>{pids}) & wait %3; exit 5"
        done = pawl(redis, "run", "k", "--", "sh", "-c", line)
        assert done.code == 5 and "left" in done.err, done
        assert not [pid for pid in read_file(pids).split() if alive(pid)]
        assert redis("EXISTS", "k") == 0


def test_a_background_process_that_ignores_term_is_killed():
    with Redis() as redis, folder() as top:
        pids = os.path.join(top, "pids")
        line = f"trap '' TERM; (echo in >{pids}; while :; do sleep 0.1; done) & sleep 0.2"
        begun = time.monotonic()
        assert pawl(redis, "run", "--grace", "300ms", "k", "--", "sh", "-c", line).code == 0
        assert time.monotonic() - begun < 3
        assert redis("EXISTS", "k") == 0


def test_keep_for_daemon_holds_until_it_ends():
    with Redis() as redis, folder() as top:
        pids = os.path.join(top, "pids")
        line = f"setsid sleep 300 & echo $! >{pids}; exit 6"
        with started(redis, "run", "--keep-for-daemon", "k", "--", "sh", "-c", line) as run:
            pid = int(await_text(pids))
            time.sleep(0.3)
            assert run.poll() is None and redis("EXISTS", "k") == 1 and alive(pid)
            os.kill(pid, signal.SIGTERM)
            assert run.wait(5) == 6
            assert redis("EXISTS", "k") == 0
        with started(redis, "run", "--leftover", "leave", "k", "--", "sh", "-c", line) as run:
            assert run.wait(5) == 6 and redis("EXISTS", "k") == 0
            os.kill(int(read_file(pids)), signal.SIGKILL)


def test_exit_codes_right_among_orphans():
    with Redis() as redis:
        line = "i=0; while [ $i -lt 60 ]; do (true & true) & i=$((i+1)); done; exit 9"
        for _ in range(5):
            assert pawl(redis, "run", "k", "--", "sh", "-c", line).code == 9


def test_as_process_1_it_reaps():
    with Redis() as redis:
        line = "i=0; while [ $i -lt 200 ]; do (true & true) & i=$((i+1)); done; sleep 0.5; " \
               "grep -l 'State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l"
        done = subprocess.run(["unshare", "--fork", "--pid", "--mount-proc", PAWL, "run", "k",
                               "--", "sh", "-c", line], env=environment(redis), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if "unshare" in done.stderr:
            from clitest import Skip
            raise Skip(done.stderr.strip())
        assert done.returncode == 0 and int(done.stdout) == 0, done


def test_stdout_and_stdin_end_with_the_job():
    with Redis() as redis:
        command = f'("{PAWL}" run k -- sh -c "exec >&-; sleep 30" &) | cat; ' \
                  f'"{PAWL}" run -n k -- true'
        begun = time.monotonic()
        done = subprocess.run(["sh", "-c", command], env=environment(redis), check=False,
                              timeout=20, stderr=subprocess.DEVNULL)
        assert done.returncode == BUSY and time.monotonic() - begun < 5
        info = redis("HGET", "k", "@w").split()
        os.kill(int(info[1]), signal.SIGTERM)
        await_true(lambda: redis("EXISTS", "k") == 0, "the job ended")


def test_output_cut_by_the_reader_is_no_trouble():
    with Redis() as redis:
        done = subprocess.run(["bash", "-c", f'"{PAWL}" run k -- yes | head -1; '
                               'echo ${PIPESTATUS[0]}'], env=environment(redis),
                              stdout=subprocess.PIPE, text=True, check=False, timeout=20)
        assert done.stdout == "y\n141\n", done
        assert redis("EXISTS", "k") == 0


def test_it_costs_little():
    with Redis() as redis:
        def seconds(*command):
            begun = time.monotonic()
            for _ in range(20):
                subprocess.run(command, env=environment(redis), check=True)
            return (time.monotonic() - begun) / 20
        plain, wrapped = seconds("true"), seconds(PAWL, "run", "k", "--", "true")
        print(f"overhead of pawl run: {(wrapped - plain) * 1000:.1f} ms")
        # The aim is 3 ms; what fails here is a wait that should not be.
        assert wrapped - plain < 0.05


if __name__ == "__main__":
    run_tests(globals())
