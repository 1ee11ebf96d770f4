#!/usr/bin/env python3
"""pawl ls, show, break, acquire, release, hold."""
import contextlib
import json
import os
import signal
import subprocess
import time

from clitest import (BUSY, DENIED, LOST, PAWL, REFUSED, UNREACHABLE, USAGE, Redis, Terminal,
                     await_true, environment, folder, pawl, read_file, run_tests, started)

ODD = ("a b", "q'\"`$(id)", "l1\nl2", "tab\t", "замок-锁-🔒", "{a}b}", "%s%n")


@contextlib.contextmanager
def held(redis, key="k", *options):
    with started(redis, "run", *options, key, "--", "sleep", "60") as run:
        await_true(lambda: redis("EXISTS", key) == 1, "held")
        yield run


def rows(redis, *args):
    done = pawl(redis, "ls", "--json", *args)
    assert done.code == 0, done
    return json.loads(done.out)


def test_ls_lists_locks_and_nothing_else():
    with Redis() as redis:
        assert rows(redis) == [] and pawl(redis, "ls").code == 0
        redis("HSET", "user:1", "name", "x", "age", "7")
        redis("HSET", "numbers", *[str(i) for i in range(40)])
        redis("SET", "plain", "x")
        redis("SET", "setnx", "x", "PX", "60000")
        redis("HSET", "redisson", "6b1f:57", "2")
        redis("PEXPIRE", "redisson", "30000")
        with held(redis, "first"):
            time.sleep(0.05)
            with held(redis, "second"), started(redis, "run", "second", "--", "true"):
                await_true(lambda: [r for r in rows(redis, "second") if r["n_waiters"] == 1],
                           "one waits")
                found = rows(redis)
                assert [row["key"] for row in found] == ["first", "second", "redisson"], found
                assert found[0]["verdict"] == "fine" and found[0]["count"] == 1
                assert found[2]["kind"] == "hash" and found[2]["count"] == 2
                assert [row["key"] for row in rows(redis, "sec*")] == ["second"]
                assert {"setnx"} < {row["key"] for row in rows(redis, "--strings")}
                out = pawl(redis, "ls").out.splitlines()
                assert len(out) == 4 and "sleep@" in out[1] and "fine" in out[1], out
                assert "\x1b" not in "".join(out)
        assert b"cmdstat_keys" not in redis("INFO", "commandstats")


def test_ls_of_many_locks():
    with Redis() as redis:
        for i in range(1500):
            redis("HSET", f"m:{i}", "0" * 32, "1", "@t", str(10 ** 15 + i), "@l", "30000", "@g",
                  "1", "@e", "0", "@w", "h 1 1 b")
            redis("PEXPIRE", f"m:{i}", "30000")
        assert len(rows(redis, "m:*")) == 1500


def test_prefix_and_odd_names():
    with Redis() as redis, contextlib.ExitStack() as stack:
        for name in ODD:
            stack.enter_context(started(redis, "run", "--prefix", "p[1]:", name, "--", "sleep",
                                        "60"))
        await_true(lambda: len(rows(redis, "--prefix", "p[1]:")) == len(ODD), "all held")
        found = rows(redis, "--prefix", "p[1]:")
        names = {bytes.fromhex(r["key_hex"]).decode() if "key_hex" in r else r["key"]
                 for r in found}
        assert names == set(ODD), names
        text = pawl(redis, "ls", "--prefix", "p[1]:").out
        assert "l1\\nl2" in text and len(text.splitlines()) == len(ODD) + 1, text
        for name in ODD:
            done = pawl(redis, "show", "--prefix", "p[1]:", "--json", name)
            assert done.code == 0 and json.loads(done.out)["kind"] == "pawl", done


def test_show_in_words():
    with Redis() as redis, held(redis), started(redis, "run", "--label", "next", "k", "--",
                                                "true"):
        await_true(lambda: json.loads(pawl(redis, "show", "--json", "k").out)["n_waiters"] == 1,
                   "one waits")
        done = pawl(redis, "show", "k")
        assert done.code == 0
        for word in ("owner", "token", "alive", "keeps up", "of a lease of 30s", ":next",
                     "waiting     1"):
            assert word in done.out, (word, done)
        assert "@h" not in done.out


def test_show_verdicts():
    with Redis() as redis:
        def verdict():
            return json.loads(pawl(redis, "show", "--json", "k").out)["verdict"]
        assert pawl(redis, "show", "k").code == 1
        with held(redis) as run:
            assert verdict() == "fine"
            redis("PERSIST", "k")
            assert verdict() == "no-expiry" and "ALARM" in pawl(redis, "show", "k").out
            redis("PEXPIRE", "k", "30000")
            keeper = int(redis("HGET", "k", "@w").split()[1])
            os.kill(keeper, signal.SIGKILL)
            run.wait(5)
            assert verdict() == "dead"
            redis("HSET", "k", "f" * 32, "1")
            assert verdict() == "shared"
            redis("HSET", "k", "@r", "1")
        redis("DEL", "k")
        redis("SET", "k", "x", "PX", "5000")
        assert verdict() == "foreign"
        redis("DEL", "k")
        redis("LPUSH", "k", "x")
        assert pawl(redis, "show", "k").code == REFUSED


def test_looking_fails_by_cause():
    for command in (["ls"], ["show", "k"], ["break", "--yes", "k"], ["release", "k", "0" * 32]):
        assert pawl("redis://127.0.0.1:1", *command).code == UNREACHABLE, command
        assert pawl("nonsense:", *command).code == USAGE, command
        with Redis("--requirepass", "x") as redis:
            assert pawl(redis, *command).code == DENIED, command
    for command in (["show"], ["show", "a", "b"], ["ls", "a", "b"], ["break"], ["release", "k"],
                    ["hold", "k"], ["break", "--token", "x", "k"], ["release", "k", "owner"]):
        assert pawl("redis://127.0.0.1:1", *command).code == USAGE, command


def test_break_revokes_what_was_seen_and_writes_an_audit_line():
    with Redis() as redis, folder() as top:
        audit = os.path.join(top, "audit")
        assert pawl(redis, "break", "--yes", "k").code == 1
        with held(redis, "k", "--lease", "900ms") as run:
            token = json.loads(pawl(redis, "show", "--json", "k").out)["token"]
            done = pawl(redis, "break", "k")
            assert done.code == USAGE and f"--token {token} --yes" in done.err, done
            assert pawl(redis, "break", "--yes", "--token", str(token + 1), "k").code == 1
            assert run.poll() is None and not redis("HGET", "k", "@r")
            done = pawl(redis, "break", "--yes", "--token", str(token), "--audit", audit, "k")
            assert done.code == 0 and "renewals will be refused" in done.err, done
            line = json.loads(read_file(audit))
            assert line["token"] == token and line["by"] and line["action"] == "revoke"
            assert line["result"] == "PAWL_OK" and line["owner"], line
            assert run.wait(5) == LOST


def test_break_now_lets_the_next_one_in():
    with Redis() as redis, folder() as top, held(redis):
        mark = os.path.join(top, "mark")
        with started(redis, "run", "k", "--", "touch", mark) as waiter:
            await_true(lambda: rows(redis)[0]["n_waiters"] == 1, "one waits")
            done = pawl(redis, "break", "--now", "--yes", "k")
            assert done.code == 0 and "DANGER" in done.err, done
            assert waiter.wait(5) == 0 and os.path.exists(mark)


def test_break_asks_on_a_terminal():
    with Redis() as redis, held(redis) as run:
        for answer, code in (("n\n", 1), ("\n", 1), ("y\n", 0)):
            with Terminal(PAWL, "break", "--now", "k", env=environment(redis)) as terminal:
                terminal.await_text("[y/N]")
                terminal.type(answer)
                assert terminal.end() == code
        assert run.wait(15) == LOST


def test_break_of_another_clients_lock():
    with Redis() as redis:
        redis("SET", "k", "x", "PX", "60000")
        assert pawl(redis, "break", "--yes", "k").code == USAGE
        assert redis("EXISTS", "k") == 1
        assert pawl(redis, "break", "--yes", "--now", "k").code == 0
        assert redis("EXISTS", "k") == 0


def test_acquire_and_release():
    with Redis() as redis:
        done = pawl(redis, "acquire", "--lease", "20s", "--label", "script", "k")
        owner = done.out.strip()
        assert done.code == 0 and owner.endswith(":script"), done
        assert 18000 < redis("PTTL", "k") <= 20000
        assert pawl(redis, "acquire", "--wait", "0", "k").code == BUSY
        assert pawl(redis, "acquire", "--wait", "0", "--owner", owner, "k").code == 0
        assert pawl(redis, "release", "k", "0" * 32).code == 1
        assert redis("EXISTS", "k") == 1
        assert pawl(redis, "release", "k", owner).code == 0
        assert redis("EXISTS", "k") == 0
        assert pawl(redis, "release", "k", owner).code == 1
        assert pawl(redis, "acquire", "--lease", "300ms", "k").code == 0
        await_true(lambda: redis("EXISTS", "k") == 0, "the lease is its end", 2)


def test_acquire_gives_back_what_nobody_can_read():
    with Redis() as redis, open("/dev/full", "w", encoding="utf-8") as full:
        code = subprocess.call([PAWL, "acquire", "k"], env=environment(redis), stdout=full,
                               stderr=subprocess.DEVNULL)
        assert code == REFUSED and redis("EXISTS", "k") == 0


def test_hold_as_long_as_a_process_lives():
    with Redis() as redis:
        owner = pawl(redis, "acquire", "--lease", "600ms", "k").out.strip()
        job = subprocess.Popen(["sleep", "60"])
        with started(redis, "hold", "--for-pid", str(job.pid), "--lease", "600ms", "--owner", owner,
                     "k") as hold:
            time.sleep(1.5)
            assert redis("EXISTS", "k") == 1 and hold.poll() is None
            job.kill()
            job.wait()
            assert hold.wait(5) == 0 and redis("EXISTS", "k") == 0
        assert pawl(redis, "hold", "--for-pid", str(job.pid), "k").code == USAGE


def test_hold_in_the_background():
    with Redis() as redis:
        script = f'"{PAWL}" hold --for-pid $$ --background k || exit; sleep 0.3; ' \
                 f'"{PAWL}" run -n k -- true; exit $?'
        done = subprocess.run(["sh", "-c", script], env=environment(redis), check=False,
                              stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=10)
        assert done.returncode == BUSY
        await_true(lambda: redis("EXISTS", "k") == 0, "given back after the script")


if __name__ == "__main__":
    run_tests(globals())
