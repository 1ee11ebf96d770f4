#!/usr/bin/env python3
"""pawl doctor and pawl acl."""
import json
import os
import shlex
import signal

from clitest import (PAWL, SOURCE, USAGE, Redis, await_true, environment, pawl, read_file,
                     run_tests, started)


def examine(redis, *args, code=None):
    done = pawl(redis, "doctor", "--json", *args)
    assert done.code in (0, 1, 2), done
    report = json.loads(done.out)
    assert done.code == {"warn": 1, "fail": 2}.get(report["worst"], 0), done
    assert code is None or done.code == code, done
    return report["findings"]


def levels(findings):
    return {f["id"]: f["level"] for f in findings}


def test_a_good_server_is_all_well():
    with Redis("--appendonly", "yes", "--appendfsync", "always") as redis:
        found = examine(redis, code=0)
        assert levels(found)["aof"] == "ok" and levels(found)["rights"] == "ok"
        assert redis("DBSIZE") == 0, redis("KEYS", "*")
        done = pawl(redis, "doctor")
        assert done.code == 0 and "all well" in done.out and "\x1b" not in done.out, done
        assert levels(examine(redis, "--read-only", code=0))["rights"] == "info"


def test_the_server_s_settings():
    with Redis() as redis:
        assert levels(examine(redis, code=2))["aof"] == "fail"
        redis("CONFIG", "SET", "appendonly", "yes")
        assert levels(examine(redis, code=1))["appendfsync"] == "warn"
        redis("CONFIG", "SET", "appendfsync", "always")
        redis("CONFIG", "SET", "maxmemory", "100mb")
        assert examine(redis, code=0)
        redis("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        assert levels(examine(redis, code=2))["eviction"] == "fail"
        redis("CONFIG", "SET", "maxmemory-policy", "noeviction")
        redis("CONFIG", "SET", "maxmemory", "1kb")
        assert levels(examine(redis, code=2))["memory"] == "fail"
        redis("CONFIG", "SET", "maxmemory", "0")
        with Redis(tcp=True) as master:
            redis("REPLICAOF", "127.0.0.1", master.port)
            await_true(lambda: b"connected_slaves:1" in master("INFO", "replication"), "replica")
            assert levels(examine(redis, code=2))["role"] == "fail"
            assert levels(examine(master))["min-replicas"] == "warn"
            master("CONFIG", "SET", "min-replicas-to-write", "1")
            assert levels(examine(master))["min-replicas"] == "ok"


def test_what_cannot_be_reached_is_said():
    found = examine("redis://127.0.0.1:1", code=2)
    assert found[0]["id"] == "PAWL_ECONNECT" and found[0]["advice"]
    assert examine("redis://no.such.host.invalid", code=2)[0]["id"] == "PAWL_ERESOLVE"
    with Redis("--requirepass", "x") as redis:
        assert examine(redis, code=2)[0]["id"] == "PAWL_ENOAUTH"
        wrong = redis.url.replace("redis+unix://", "redis+unix://:bad@")
        assert examine(wrong, code=2)[0]["id"] == "PAWL_EAUTH"
    assert pawl("redis://127.0.0.1:1", "doctor", "--symptom", "x").code == USAGE


def test_production_asks_what_no_tool_can_see():
    found = examine("redis://127.0.0.1:1", "--production", code=2)
    assert sum(f["level"] == "question" for f in found) >= 8
    page = read_file(os.path.join(SOURCE, "docs", "production-checklist.md"))
    for finding in found:
        if finding["level"] == "question":
            assert finding["seen"].split("?")[0] in page.replace("\n", " "), finding


def test_a_held_lock():
    with Redis() as redis:
        assert levels(examine(redis, "k"))["PAWL_FREE"] == "ok"
        with started(redis, "run", "k", "--", "sleep", "60") as run:
            await_true(lambda: redis("EXISTS", "k"), "held")
            for symptom in ("stuck", "oversold", "twice", "never"):
                found = levels(examine(redis, "--symptom", symptom, "k"))
                assert found[symptom] == "info"
            assert found["fine"] == "ok" and found["process"] == "ok" and found["cycle"] == "ok"
            redis("PERSIST", "k")
            assert levels(examine(redis, "k", code=2))["no-expiry"] == "fail"
            redis("PEXPIRE", "k", "9000")
            assert levels(examine(redis, "k"))["owners"] == "ok"
            redis("HSET", "k", "other", "1")
            assert levels(examine(redis, "k", code=2))["owners"] == "fail"
            redis("HDEL", "k", "other")
            os.kill(int(redis("HGET", "k", "@w").split()[1]), signal.SIGKILL)
            run.wait(5)
            assert levels(examine(redis, "k"))["process"] == "warn"
        redis("DEL", "k")
        redis("LPUSH", "k", "x")
        assert levels(examine(redis, "k", code=2))["PAWL_EWRONGTYPE"] == "fail"


def test_a_cycle_is_found():
    with Redis() as redis:
        # One owner of its own holds a and waits for b, the other the other way round.
        owners = ["1" * 32, "2" * 32]
        for owner, key in zip(owners, "ab"):
            assert pawl(redis, "acquire", "--owner", owner, key).code == 0
        with started(redis, "acquire", "--owner", owners[0], "b"), \
                started(redis, "acquire", "--owner", owners[1], "a"):
            await_true(lambda: levels(examine(redis, "a")).get("cycle") == "fail", "cycle")
            found = [f for f in examine(redis, "a", code=2) if f["id"] == "cycle"]
            assert "a -> b -> a" in found[0]["seen"], found


def user(redis, *changes):
    line = pawl(None, "acl", "--user", "app", "--prefix", "p:", "--operator").out
    redis(*shlex.split(line.replace(">PASSWORD", ">pw")), *changes)
    return redis.url.replace("redis+unix://", "redis+unix://app:pw@")


def test_acl_line_is_enough_and_each_missing_right_is_named():
    with Redis("--appendonly", "yes", "--appendfsync", "always") as redis:
        url = user(redis)
        assert isinstance(redis("ACL", "GETUSER", "app"), list)
        found = examine(url, "--prefix", "p:", code=0)
        assert levels(found)["rights"] == "ok"
        assert not redis("ACL", "LOG"), redis("ACL", "LOG")
        with started(url, "run", "--prefix", "p:", "k", "--", "sleep", "0.5"):
            await_true(lambda: redis("EXISTS", "p:k"), "held")
            assert pawl(url, "run", "--prefix", "p:", "k", "--", "true").code == 0
        assert pawl(url, "ls", "--prefix", "p:").code == 0
        commands = json.loads(pawl(None, "--json", "acl").out)["commands"]
        assert len(commands) > 25
        for command in commands:
            url = user(redis, "-" + command)
            done = pawl(url, "run", "--prefix", "p:", "--wait", "300ms", "--lease", "300ms", "x",
                        "--", "true")
            assert done.code in (0, 247, 248, 251, 252), (command, done)
            assert done.code == 0 or done.err, command
            if command not in ("subscribe", "select", "client|setname", "info", "role"):
                done = pawl(url, "doctor", "--prefix", "p:")
                assert f"no right to {command};" in done.out or "ENOPERM" in done.out or \
                    f"{command.upper()} is refused" in done.out, (command, done)


def test_acl_agrees_with_the_protocol_page():
    page = read_file(os.path.join(SOURCE, "docs", "protocol.md"))
    line = pawl(None, "acl", "--prefix", "shop:", "--user", "shop").out
    there = {word for word in page.split("ACL SETUSER shop", 1)[1].split("\n", 1)[0].split()
             if word.startswith("+")}
    assert there == {word for word in line.split() if word.startswith("+")}


def test_acl_quotes_the_prefix():
    done = pawl(None, "acl", "--prefix", "it's *")
    assert shlex.split(done.out)[8] == r"~it's \**", done
    assert pawl(None, "acl", "--user", "a b").code == USAGE


if __name__ == "__main__":
    run_tests(globals())
