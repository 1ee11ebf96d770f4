#!/usr/bin/env python3
"""Man pages, completions and the Chinese texts go with the program."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

from clitest import SOURCE, USAGE, Redis, Skip, environment, pawl, read_file, run_tests, started, \
    await_true

sys.path.insert(0, os.path.join(SOURCE, "tools"))
import po  # noqa: E402  pylint: disable=wrong-import-position

COMMANDS = re.findall(r'\{ "([a-z]+)", command_',
                      read_file(os.path.join(SOURCE, "cli", "main.c")))
CATALOGUE = os.path.join(SOURCE, "po", "zh_CN.po")


def source(*names):
    return read_file(os.path.join(SOURCE, *names))


def options_of(command):
    """As its source has them."""
    name = {"ls": "list", "acquire": "hand", "release": "hand", "hold": "hand"}.get(command,
                                                                                    command)
    return set(re.findall(r'^\s*\{\s*"([a-z-]+)", (?:no|required)_argument',
                          source("cli", name + ".c"), re.M))


def test_every_command_has_a_man_page_with_its_options():
    assert len(COMMANDS) >= 13
    overview = source("docs", "man", "pawl.1")
    for command in COMMANDS:
        page = source("docs", "man", f"pawl-{command}.1").replace("\\-", "-")
        assert ".SH EXAMPLES" in page and f"pawl {command}" in page, command
        assert f"pawl\\-{command} (1)" in overview, command
        if command not in ("acquire", "release", "hold"):
            for option in options_of(command):
                assert f"--{option}" in page or option == "owner", (command, option)
        help_text = pawl(None, command, "--help").out
        for option in re.findall(r"--[a-z-]+", help_text):
            assert option in page, (command, option)


def test_man_pages_are_well_formed():
    if shutil.which("groff") is None:
        raise Skip("no groff here")
    for page in glob.glob(os.path.join(SOURCE, "docs", "man", "*.1")):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", page], text=True,
                              stderr=subprocess.PIPE, check=False)
        assert done.returncode == 0 and not done.stderr, (page, done.stderr)


def complete(line, redis=None):
    script = f'source "{SOURCE}/cli/completion/pawl.bash"; COMP_WORDS=({line}); ' \
             'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=(); _pawl; ' \
             'printf "%s\\n" "${COMPREPLY[@]}"'
    env = environment(redis)
    env["PATH"] = os.path.join(os.environ["PAWL_BUILD"], "bin") + ":" + env["PATH"]
    return subprocess.run(["bash", "-c", script], text=True, stdout=subprocess.PIPE, check=True,
                          env=env).stdout.split()


def test_bash_completion():
    assert set(COMMANDS) <= set(complete("pawl ''"))
    assert complete("pawl sh") == ["show"]
    assert complete("pawl run --on-busy ''") == ["fail", "skip"]
    for command in COMMANDS:
        if command not in ("acquire", "release", "hold"):
            missing = options_of(command) - {o[2:] for o in complete(f"pawl {command} --")}
            assert not missing, (command, missing)
    with Redis() as redis, started(redis, "run", "order:1", "--", "sleep", "60"):
        await_true(lambda: redis("EXISTS", "order:1"), "held")
        assert complete("pawl show or", redis) == ["order:1"]


def test_zsh_completion_names_every_command():
    text = source("cli", "completion", "_pawl")
    for command in COMMANDS:
        assert f"'{command}:" in text, command
        if command not in ("acquire", "release", "hold"):
            for option in options_of(command):
                assert f"--{option}" in text, (command, option)


def test_every_text_has_a_chinese_one_with_the_same_values():
    pairs = po.read_po(CATALOGUE)
    for path in glob.glob(os.path.join(SOURCE, "cli", "*.c")):
        for text in po.texts_of(path):
            assert text in pairs, (path, text)
    values = re.compile(r"%[-+ #0]*[0-9.*]*(?:ll|z|l)?[a-zA-Z]")
    for english, chinese in pairs.items():
        if not english.startswith(("usage", "pawl: a")):
            assert values.findall(english) == values.findall(chinese), english
        assert english.endswith("\n") == chinese.endswith("\n"), english
    header = source("include", "pawl.h")
    for sentence in re.findall(r'^    X\(\w+, -?\d+, \w+, "([^"]+)"\)', header, re.M):
        assert sentence in pairs, sentence


def test_the_language_follows_the_locale():
    chinese = "锁"
    for settings, expected in (({"LANG": "zh_CN.UTF-8"}, True), ({"LC_ALL": "zh_CN.utf8"}, True),
                               ({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, False),
                               ({"LC_MESSAGES": "zh_CN.UTF-8"}, True),
                               ({"LANG": "en_US.UTF-8"}, False),
                               ({"LANG": "en_US.UTF-8", "LANGUAGE": "zh:en"}, True),
                               ({"LANG": "zh_CN.UTF-8", "LANGUAGE": "en:zh"}, False),
                               ({"LANG": "zh_CN.GB18030"}, False), ({}, False)):
        done = pawl(None, "--help", env=environment(None, **settings))
        assert (chinese in done.out) == expected, settings


def test_chinese_help_fits_and_codes_do_not_change():
    env = environment("redis://127.0.0.1:1", LANG="zh_CN.UTF-8")
    for command in COMMANDS:
        done = pawl(None, command, "--help", env=env)
        assert "用法" in done.out and len(done.out.splitlines()) <= 40, command
    assert pawl(None, "run", "--wait", "3", "k", "--", "true", env=env).code == USAGE
    report = json.loads(pawl(None, "doctor", "--json", env=env).out)
    assert report["worst"] == "fail" and report["findings"][0]["id"] == "PAWL_ECONNECT"
    assert "无法" in report["findings"][0]["seen"]


if __name__ == "__main__":
    run_tests(globals())
