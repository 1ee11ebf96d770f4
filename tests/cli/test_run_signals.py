#!/usr/bin/env python3
"""pawl run: each signal in each state, and what a terminal does."""
import os
import signal
import time

from clitest import (PAWL, Redis, Terminal, alive, await_text, await_true, environment, folder,
                     read_file, run_tests, started, state_of)

ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1,
          signal.SIGUSR2, signal.SIGALRM, signal.SIGPIPE)
RECORDER = """
import os, signal, sys, time
path, ready = sys.argv[1:3]
def record(number, frame):
    with open(path, "a") as out:
        out.write(signal.Signals(number).name + "\\n")
    if number == signal.SIGTERM:
        time.sleep(0.2)
        sys.exit(11)
for name in sys.argv[3].split(","):
    signal.signal(getattr(signal, name), record)
open(ready, "w").write(str(os.getpid()))
while True:
    time.sleep(0.05)
"""


def held(redis, key="k"):
    return redis("EXISTS", key) == 1


def queued(redis, key="k"):
    """Does anybody wait for the lock?"""
    keys = [name for name in redis("KEYS", "pawl:q:*") if name.endswith(key.encode())]
    return bool(keys)


def test_waiting_any_ending_signal_leaves_the_queue():
    with Redis() as redis, folder() as top, started(redis, "run", "k", "--", "sleep", "60"):
        await_true(lambda: held(redis), "held")
        for sig in ENDING:
            mark = os.path.join(top, "mark")
            with started(redis, "run", "k", "--", "touch", mark) as waiter:
                await_true(lambda: queued(redis), "in the queue")
                begun = time.monotonic()
                waiter.send_signal(sig)
                assert waiter.wait(5) == 128 + sig, sig
                assert time.monotonic() - begun < 1
            await_true(lambda: not queued(redis), "the queue is empty")
            assert not os.path.exists(mark)


def test_waiting_for_a_dead_store_ends_at_once_too():
    for sig in (signal.SIGINT, signal.SIGTERM):
        with started("redis://127.0.0.1:1", "run", "k", "--", "true") as waiter:
            time.sleep(0.3)
            waiter.send_signal(sig)
            assert waiter.wait(3) == 128 + sig


def test_waiting_ignored_signals_stay_ignored():
    with Redis() as redis, started(redis, "run", "k", "--", "sleep", "60"):
        await_true(lambda: held(redis), "held")
        import subprocess
        waiter = subprocess.Popen(["nohup", PAWL, "run", "k", "--", "true"],
                                  env=environment(redis), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            await_true(lambda: queued(redis), "in the queue")
            waiter.send_signal(signal.SIGHUP)
            waiter.send_signal(signal.SIGWINCH)
            time.sleep(0.3)
            assert waiter.poll() is None
            waiter.send_signal(signal.SIGTERM)
            assert waiter.wait(5) == 128 + signal.SIGTERM
        finally:
            waiter.kill()
            waiter.wait()


def test_running_signals_end_the_job_then_the_lock_is_free():
    with Redis() as redis:
        for sig in ENDING:
            with started(redis, "run", "k", "--", "sh", "-c", "trap - TERM; exec sleep 60") as run:
                await_true(lambda: held(redis), "held")
                time.sleep(0.1)
                run.send_signal(sig)
                assert run.wait(5) == 128 + sig, sig
                assert not held(redis)


def test_just_granted_signals_are_not_lost():
    with Redis() as redis:
        for _ in range(15):
            with started(redis, "run", "k", "--", "sleep", "60") as run:
                await_true(lambda: held(redis), "held")
                run.send_signal(signal.SIGTERM)
                assert run.wait(5) == 128 + signal.SIGTERM
            assert not held(redis)


def test_running_signals_reach_the_job_once_and_again():
    with Redis() as redis, folder() as top:
        log, ready = os.path.join(top, "log"), os.path.join(top, "ready")
        names = "SIGHUP,SIGINT,SIGQUIT,SIGUSR1,SIGUSR2,SIGALRM,SIGWINCH,SIGTERM"
        with started(redis, "run", "k", "--", "/usr/bin/python3", "-S", "-c", RECORDER, log, ready,
                     names) as run:
            await_text(ready)
            expected = []
            for name in names.split(",")[:-1] + ["SIGINT"]:
                run.send_signal(getattr(signal, name))
                expected.append(name)
                await_true(lambda: read_file(log).split() == expected,
                           f"{expected} in the job, not {read_file(log).split()}")
            run.send_signal(signal.SIGTERM)
            await_true(lambda: read_file(log).split() == expected + ["SIGTERM"], "TERM")
            assert held(redis), "the lock went before the job"
            assert run.wait(5) == 11
            assert not held(redis)


def test_a_job_that_ignores_term_runs_on_until_killed():
    with Redis() as redis, folder() as top:
        ready = os.path.join(top, "ready")
        line = f"trap '' TERM; echo $$ >{ready}; while :; do sleep 0.05; done"
        with started(redis, "run", "k", "--", "sh", "-c", line) as run:
            pid = int(await_text(ready))
            run.send_signal(signal.SIGTERM)
            run.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            assert run.poll() is None and alive(pid) and held(redis)
            run.kill()
            await_true(lambda: not alive(pid), "the job went with pawl", 3)
            await_true(lambda: not held(redis), "the lock is free", 3)


def test_releasing_signals_do_not_lose_the_code():
    with Redis() as redis:
        with started(redis, "run", "k", "--", "sh", "-c", "sleep 0.4; exit 7") as run:
            await_true(lambda: held(redis), "held")
            redis("CLIENT", "PAUSE", "1200", "WRITE")
            time.sleep(0.6)
            run.send_signal(signal.SIGTERM)
            run.send_signal(signal.SIGINT)
            assert run.wait(6) == 7
        await_true(lambda: not held(redis), "free", 35)


def test_stop_and_continue_without_a_terminal():
    with Redis() as redis, folder() as top:
        ready = os.path.join(top, "ready")
        with started(redis, "run", "k", "--", "sh", "-c",
                     f"echo $$ >{ready}; exec sleep 60") as run:
            pid = int(await_text(ready))
            await_true(lambda: state_of(pid) == "S", "sleeps")
            run.send_signal(signal.SIGTSTP)
            await_true(lambda: state_of(pid) == "T", "the job stops")
            run.send_signal(signal.SIGCONT)
            await_true(lambda: state_of(pid) == "S", "the job goes on")
            run.send_signal(signal.SIGTERM)
            assert run.wait(5) == 143


def test_with_parent_ends_when_the_parent_does():
    with Redis() as redis, folder() as top:
        import subprocess
        ready = os.path.join(top, "ready")
        shell = subprocess.Popen(["sh", "-c", '"$0" run --with-parent k -- sh -c "$1"; true', PAWL,
                                  f"echo $$ >{ready}; exec sleep 60"], env=environment(redis))
        pid = int(await_text(ready))
        shell.kill()
        shell.wait()
        await_true(lambda: not alive(pid) and not held(redis), "job and lock went", 5)


def terminal(redis, rows=24, columns=80):
    shell = Terminal("bash", "--norc", "--noprofile", "-i", rows=rows, columns=columns,
                     env=environment(redis, PS1="ready> ", TERM="xterm", PAWL=PAWL))
    shell.await_text("ready> ")
    return shell


def test_ctrl_c_ends_the_job_once():
    with Redis() as redis, folder() as top, terminal(redis) as shell:
        log, ready = os.path.join(top, "log"), os.path.join(top, "ready")
        script = os.path.join(top, "recorder.py")
        with open(script, "w", encoding="utf-8") as out:
            out.write(RECORDER)
        shell.type(f"$PAWL run k -- /usr/bin/python3 -S {script} {log} {ready} SIGINT,SIGTERM\n")
        await_text(ready)
        shell.type("\x03")
        await_true(lambda: read_file(log) == "SIGINT\n", "one INT")
        time.sleep(0.3)
        assert read_file(log) == "SIGINT\n", read_file(log)
        shell.type("\x03")
        await_true(lambda: read_file(log) == "SIGINT\n" * 2, "the second one")
        os.kill(int(read_file(ready)), signal.SIGKILL)
        shell.await_text("ready> ")
        shell.type("echo code=$?\n")
        shell.await_text("code=137")
        shell.type("$PAWL run k -- sleep 60\n")
        await_true(lambda: held(redis), "held")
        time.sleep(0.2)
        shell.type("\x03")
        shell.await_text("ready> ")
        shell.type("echo code=$?\n")
        shell.await_text("code=130")
        assert not held(redis)


def test_ctrl_z_fg_and_bg():
    with Redis() as redis, folder() as top, terminal(redis) as shell:
        ready = os.path.join(top, "ready")
        line = f"echo $$ >{ready}; exec sleep 60"
        shell.type(f"$PAWL run --lease 600ms k -- sh -c '{line}'\n")
        pid = int(await_text(ready))
        await_true(lambda: state_of(pid) == "S", "sleeps")
        shell.type("\x1a")
        shell.await_text("Stopped")
        assert state_of(pid) == "T"
        time.sleep(1.5)
        assert held(redis), "the lock of a stopped job lapsed"
        shell.type("bg\n")
        await_true(lambda: state_of(pid) == "S", "goes on in the background")
        shell.type("fg\n")
        time.sleep(0.3)
        shell.type("\x1a")
        shell.await_text("Stopped")
        shell.type("fg\n")
        await_true(lambda: state_of(pid) == "S", "goes on")
        shell.type("\x03")
        shell.await_text("ready> ")
        await_true(lambda: not held(redis), "free")


def test_ctrl_z_while_waiting_leaves_the_queue():
    with Redis() as redis, folder() as top, terminal(redis) as shell:
        mark = os.path.join(top, "mark")
        with started(redis, "run", "k", "--", "sleep", "60") as holder:
            await_true(lambda: held(redis), "held")
            shell.type(f"$PAWL run k -- touch {mark}\n")
            await_true(lambda: queued(redis), "waits")
            shell.type("\x1a")
            shell.await_text("Stopped")
            await_true(lambda: not queued(redis), "left the queue")
            holder.send_signal(signal.SIGTERM)
            holder.wait(5)
        time.sleep(0.2)
        assert not os.path.exists(mark)
        shell.type("fg\n")
        await_true(lambda: os.path.exists(mark), "granted after fg")
        shell.await_text("ready> ")


def test_reading_the_terminal_and_pipelines():
    with Redis() as redis, terminal(redis) as shell:
        shell.type("$PAWL run k -- sh -c 'read x; echo got:$x; tty -s && stty size'\n")
        time.sleep(0.5)
        shell.type("hello\n")
        shell.await_text("got:hello")
        shell.await_text("24 80")
        shell.type("$PAWL run k -- seq 3 | sh -c 'cat; read x </dev/tty; echo tty:$x'\n")
        shell.await_text("3\r\n")
        shell.type("more\n")
        shell.await_text("tty:more")
        shell.type("$PAWL run k -- cat &\n")
        time.sleep(0.3)
        shell.type("\n\n")
        shell.await_text("Stopped")
        shell.type("fg\n")
        time.sleep(0.3)
        shell.type("line\n")
        shell.await_text("line\r\nline")
        shell.type("\x04")
        shell.await_text("ready> ")


def test_a_closed_terminal_ends_the_job():
    with Redis() as redis, folder() as top:
        ready = os.path.join(top, "ready")
        with terminal(redis) as shell:
            shell.type(f"$PAWL run k -- sh -c 'echo $$ >{ready}; exec sleep 60'\n")
            pid = int(await_text(ready))
        await_true(lambda: not alive(pid) and not held(redis), "job and lock went", 5)


if __name__ == "__main__":
    run_tests(globals())
