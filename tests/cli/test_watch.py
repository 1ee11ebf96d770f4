#!/usr/bin/env python3
"""pawl watch: full screen on a terminal, lines elsewhere."""
import fcntl
import json
import os
import signal
import struct
import subprocess
import termios

from clitest import (PAWL, UNREACHABLE, USAGE, Redis, Skip, Terminal, await_true, environment,
                     folder, pawl, read_file, run_tests, started)


def screen(redis, *args, **kwargs):
    return Terminal(PAWL, "watch", *args, env=environment(redis, TERM="xterm"), **kwargs)


def test_lines_where_stdout_is_no_terminal():
    with Redis() as redis, folder() as top:
        path = os.path.join(top, "events")
        with open(path, "wb") as out, \
                started(redis, "watch", "--json", "--every", "100ms", "a*", stdout=out) as watch:
            def events():
                return [(e["event"], e["key"])
                        for e in map(json.loads, read_file(path).splitlines())]
            with started(redis, "run", "b", "--", "sleep", "60"), \
                    started(redis, "run", "a1", "--", "sleep", "60") as run:
                await_true(lambda: len(events()) == 1, "the grant")
                waiter = None
                with started(redis, "run", "a1", "--", "sleep", "60") as waiter:
                    await_true(lambda: json.loads(pawl(redis, "show", "--json", "a1").out)
                               ["n_waiters"] == 1, "one waits")
                    run.send_signal(signal.SIGTERM)
                    await_true(lambda: ("handed-over", "a1") in events(), "the hand-over")
                    assert pawl(redis, "break", "--yes", "a1").code == 0
                    await_true(lambda: ("revoked", "a1") in events(), "revoked")
                    waiter.send_signal(signal.SIGTERM)
                    await_true(lambda: ("gone", "a1") in events(), "gone")
            assert all(key == "a1" for _, key in events())
            watch.send_signal(signal.SIGTERM)
            assert watch.wait(5) == 143


def test_a_reader_that_goes_ends_it():
    with Redis() as redis, started(redis, "run", "k", "--", "sleep", "60"):
        await_true(lambda: redis("EXISTS", "k"), "held")
        done = subprocess.run(["sh", "-c", f'"{PAWL}" watch --every 100ms | head -1'], timeout=20,
                              env=environment(redis), stdout=subprocess.PIPE, check=False)
        assert b"'k'" in done.stdout


def test_full_screen():
    with Redis() as redis, started(redis, "run", "order:1", "--", "sleep", "60"):
        await_true(lambda: redis("EXISTS", "order:1"), "held")
        with screen(redis, "--every", "100ms") as terminal:
            start = terminal.await_text("order:1")
            assert "\x1b[?1049h" in start
            terminal.await_text("\x1b[32m")
            terminal.await_text("held 'order:1'")
            fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 60, 0, 0))
            terminal.await_text("order:1")
            terminal.type("q")
            assert terminal.end() == 0
            assert "\x1b[?1049l" in terminal.text and "\x1b[?25h" in terminal.text
        with screen(redis, "--plain") as terminal:
            terminal.await_text("held 'order:1'")
            assert "\x1b[?1049h" not in terminal.text
            terminal.type("\x03")
            assert terminal.end() == 130


def test_no_colour_when_asked():
    with Redis() as redis, started(redis, "run", "k", "--", "sleep", "60"):
        await_true(lambda: redis("EXISTS", "k"), "held")
        with Terminal(PAWL, "watch", "--every", "100ms",
                      env=environment(redis, TERM="xterm", NO_COLOR="1")) as terminal:
            text = terminal.await_text("held 'k'")
            assert "\x1b[3" not in text
            terminal.type("q")
            assert terminal.end() == 0


def test_a_lost_store_is_shown_and_found_again():
    with Redis() as redis, screen(redis, "--every", "100ms") as terminal:
        terminal.await_text("q: quit")
        redis.stop()
        terminal.await_text("reached")
        redis.start()
        terminal.await_text("q: quit")
        terminal.type("q")
        assert terminal.end() == 0


def test_in_tmux():
    import shutil
    if shutil.which("tmux") is None:
        raise Skip("no tmux here")
    with Redis() as redis, folder() as top, started(redis, "run", "k", "--", "sleep", "60"):
        await_true(lambda: redis("EXISTS", "k"), "held")
        tmux = ["tmux", "-S", os.path.join(top, "tmux"), "-f", "/dev/null"]
        env = environment(redis, TERM="xterm")

        def shown():
            return subprocess.run([*tmux, "capture-pane", "-p"], env=env, text=True, check=False,
                                  stdout=subprocess.PIPE).stdout
        subprocess.run([*tmux, "new-session", "-d", "-x", "80", "-y", "24", "sh"], env=env,
                       check=True)
        try:
            subprocess.run([*tmux, "send-keys", f"'{PAWL}' watch --every 200ms", "Enter"],
                           env=env, check=True)
            await_true(lambda: "LOCK" in shown() and "fine" in shown(), shown())
            lines = shown().splitlines()
            assert lines[0].startswith("pawl watch") and len(lines) <= 24, lines
            subprocess.run([*tmux, "send-keys", "q"], env=env, check=True)
            await_true(lambda: "LOCK" not in shown(), "the screen is given back")
        finally:
            subprocess.run([*tmux, "kill-server"], env=env, check=False)


def test_what_does_not_work_at_the_start_is_said():
    assert pawl("redis://127.0.0.1:1", "watch").code == UNREACHABLE
    assert pawl("redis://127.0.0.1:1", "watch", "--every", "1ms").code == USAGE


if __name__ == "__main__":
    run_tests(globals())
