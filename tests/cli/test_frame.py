#!/usr/bin/env python3
"""Options, durations, config file, exit codes and help."""
import json
import os
import subprocess

from clitest import (PAWL, USAGE, UNREACHABLE, DENIED, REFUSED, Redis, environment, folder, pawl,
                     run_tests)

COMMANDS = ["run", "ls", "show", "break", "acquire", "release", "hold", "doctor",
            "acl", "watch", "lease", "verify", "bench"]


def test_help_of_every_command_fits_a_screen_and_has_examples():
    for command in [[], *([c] for c in COMMANDS)]:
        done = pawl(None, *command, "--help")
        assert done.code == 0, done
        lines = done.out.splitlines()
        assert len(lines) <= 40 and max(map(len, lines)) <= 100, (command, len(lines))
        assert done.err == ""
        if command:
            assert f"pawl {command[0]} " in done.out.split("\n\n", 1)[1], f"no example: {done.out}"
            assert pawl(None, "help", *command).out == done.out
    overview = pawl(None, "--help").out
    assert len(overview.splitlines()) <= 24
    for command in COMMANDS:
        assert f" {command}" in overview, command


def test_version_names_commit_and_library():
    done = pawl(None, "--version")
    assert done.code == 0 and "commit " in done.out and "libpawl " in done.out
    assert set(json.loads(pawl(None, "--json", "--version").out)) == {"pawl", "commit", "library"}


def test_unknown_commands_and_options_are_usage_errors():
    for args in ([], ["nonsense"], ["--nonsense"], ["run", "--nonsense", "k", "--", "true"],
                 ["run"], ["run", "k"], ["run", "k", "--"], ["help", "nonsense"]):
        done = pawl("redis://127.0.0.1:1", *args)
        assert done.code == USAGE, (args, done)


def test_a_bare_number_is_refused_with_a_hint():
    for option in ("--wait", "--lease", "--max-hold", "--grace"):
        done = pawl("redis://127.0.0.1:1", "run", option, "30", "k", "--", "true")
        assert done.code == USAGE and "30s" in done.err and option in done.err, done
    for bad in ("", "s", "-1s", "1x", "1s 2s", "1.s.", "99999999999999999999s", "1e3s", "1h2"):
        done = pawl("redis://127.0.0.1:1", "run", "--lease", bad, "k", "--", "true")
        assert done.code == USAGE, (bad, done)


def test_ranges_are_named():
    for option, value, word in (("--lease", "50ms", "100ms"), ("--lease", "2h", "1h"),
                                ("--max-hold", "1s", "30d"), ("--grace", "2m", "60s"),
                                ("--wait", "8d", "7d")):
        done = pawl("redis://127.0.0.1:1", "run", option, value, "k", "--", "true")
        assert done.code == USAGE and word in done.err, done


def test_without_a_store_it_says_how_to_name_one():
    done = pawl(None, "run", "k", "--", "true")
    assert done.code == USAGE and "PAWL_URL" in done.err, done


def test_url_from_option_environment_or_config_file():
    with Redis() as redis, folder() as top:
        path = os.path.join(top, "config")
        with open(path, "w", encoding="utf-8") as out:
            out.write(f"# a comment\n\nurl = {redis.url}\nprefix = app:\n")
        dead = "redis://127.0.0.1:1"
        assert pawl(dead, "run", "-n", "k", "--", "true").code == UNREACHABLE
        assert pawl(dead, "run", "--url", redis.url, "k", "--", "true").code == 0
        assert pawl(dead, "--url", redis.url, "run", "k", "--", "true").code == 0
        env = environment(None, PAWL_CONFIG=path)
        assert pawl(None, "run", "k", "--", "true", env=env).code == 0
        assert pawl(None, "run", "--config", path, "k", "--", "true").code == 0
        os.makedirs(os.path.join(top, "pawl"))
        os.rename(path, os.path.join(top, "pawl", "config"))
        env = environment(None, PAWL_CONFIG=None, XDG_CONFIG_HOME=top)
        assert pawl(None, "run", "k", "--", "true", env=env).code == 0
        seen = redis("KEYS", "*")
        assert any(b"app:k" in key or b"{" in key for key in seen), seen


def test_config_mistakes_name_file_and_line():
    with folder() as top:
        for text in ("url redis://x\n", "nonsense = 1\n", "connect-timeout = 5\n"):
            path = os.path.join(top, "config")
            with open(path, "w", encoding="utf-8") as out:
                out.write("\n" + text)
            done = pawl(None, "run", "--config", path, "k", "--", "true")
            assert done.code == USAGE and f"{path}:2" in done.err, done
        done = pawl(None, "run", "--config", os.path.join(top, "none"), "k", "--", "true")
        assert done.code == USAGE, done


def test_codes_per_cause():
    with Redis("--requirepass", "right") as redis:
        assert pawl(redis, "run", "-n", "k", "--", "true").code == DENIED
        wrong = redis.url.replace("redis+unix://", "redis+unix://:wrong@")
        done = pawl(wrong, "run", "-n", "k", "--", "true")
        assert done.code == DENIED and "wrong@" not in done.err, done
        right = redis.url.replace("redis+unix://", "redis+unix://:right@")
        assert pawl(right, "run", "-n", "k", "--", "true").code == 0
    with Redis() as redis:
        redis("LPUSH", "list", "x")
        assert pawl(redis, "run", "-n", "list", "--", "true").code == REFUSED
        assert pawl(redis, "run", "-n", "pawl:x", "--", "true").code == USAGE
        assert pawl(redis, "run", "-n", "", "--", "true").code == USAGE
    assert pawl("nonsense://x", "run", "-n", "k", "--", "true").code == USAGE
    assert pawl("redis://127.0.0.1:1", "run", "-n", "k", "--", "true").code == UNREACHABLE


def test_messages_as_json():
    done = pawl("redis://127.0.0.1:1", "run", "--json", "-n", "k", "--", "true")
    assert done.code == UNREACHABLE
    for line in done.err.splitlines():
        assert "message" in json.loads(line)


def test_full_or_closed_output_is_a_failure():
    with open("/dev/full", "w", encoding="utf-8") as full:
        code = subprocess.call([PAWL, "--help"], stdout=full, stderr=subprocess.DEVNULL)
    assert code == REFUSED, code
    code = subprocess.call(["sh", "-c", '"$1" --help >&-', "sh", PAWL],
                           stderr=subprocess.DEVNULL)
    assert code == REFUSED, code


def test_a_password_on_the_command_line_is_not_seen_in_ps():
    with Redis("--requirepass", "secret77") as redis:
        url = redis.url.replace("redis+unix://", "redis+unix://:secret77@")
        done = pawl(None, "run", "--url", url, "k", "--", "sh", "-c",
                    "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c '[s]ecret77@'")
        assert done.out.strip() in ("0",), done


if __name__ == "__main__":
    run_tests(globals())
