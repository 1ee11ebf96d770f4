#!/usr/bin/env python3
"""Sum up a Meson test log as single test cases: test_summary.py testlog.json BUILD

Shows the whole output of every test program that failed, then one line per program, and last
"N passed, N failed, N skipped". Exit code 1 if anything failed or nothing ran.

A program's cases are counted from cmocka's lines, or from its own last line of the form "N passed,
N failed, N skipped"; a program that prints neither counts as one. A program that crashed, ran out
of time or ended with a failure that it did not count has at least one failed case."""
import json
import os
import re
import sys

OWN = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped\s*$", re.M)
BEGUN = re.compile(r"^\[==========\] (?:[^\n]*: )?Running \d+ test\(s\)", re.M)
ENDED = re.compile(r"^\[==========\] (?:[^\n]*: )?\d+ test\(s\) run", re.M)
# What a server says to --version: tests on a server pass it on.
SERVER = re.compile(r"^(Redis|Valkey) server v=(\S+)", re.M)
TOTAL = {
    "passed": re.compile(r"^\[  PASSED  \] (\d+) test\(s\)", re.M),
    "failed": re.compile(r"^\[  FAILED  \] (?:[^\n]*: )?(\d+) test\(s\)", re.M),
    "skipped": re.compile(r"^\[  SKIPPED \] (?:[^\n]*: )?(\d+) test\(s\)", re.M),
}
CASE = {
    "passed": re.compile(r"^\[       OK \] (\S+)", re.M),
    "failed": re.compile(r"^\[  FAILED  \] (\S+)$", re.M),
    "skipped": re.compile(r"^\[  SKIPPED \] (\S+)$", re.M),
}


def count_cmocka(text):
    """Counts of a cmocka program, or None if it is none."""
    begun = len(BEGUN.findall(text))
    if begun == 0:
        return None
    if len(ENDED.findall(text)) < begun:
        # Broken off: the totals of the last group are missing, its cases are all there is.
        return {kind: len(set(regex.findall(text))) for kind, regex in CASE.items()}
    return {kind: sum(map(int, regex.findall(text))) for kind, regex in TOTAL.items()}


def count(test):
    text = test.get("stdout", "") + "\n" + test.get("stderr", "")
    result = test["result"]
    counts = count_cmocka(text)
    own = OWN.findall(text)
    if counts is None and own:
        counts = dict(zip(("passed", "failed", "skipped"), map(int, own[-1])))
    if counts is None:
        counts = {"passed": int(result == "OK"), "failed": 0, "skipped": int(result == "SKIP")}
    if result not in ("OK", "SKIP") and counts["failed"] == 0:
        counts["failed"] = 1
    return counts


def suites(build):
    """Suite of each test command, as Meson knows it; the log does not say."""
    with open(os.path.join(build, "meson-info", "intro-tests.json"), encoding="utf-8") as info:
        return {tuple(test["cmd"]): test["suite"][0].split(":")[-1] for test in json.load(info)}


def suite_of(test, known):
    command = test["command"]
    for start in range(len(command)):
        if tuple(command[start:]) in known:
            return known[tuple(command[start:])]
    return "?"


def show(test):
    print(f"===== {test['name']}: {test['result']}, exit code {test['returncode']}, "
          f"after {test['duration']:.1f} s")
    for stream in ("stdout", "stderr"):
        if test.get(stream):
            print(f"--- {stream}\n{test[stream].rstrip()}")
    print(f"===== end of {test['name']}")


def main():
    with open(sys.argv[1], encoding="utf-8", errors="replace") as log:
        tests = [json.loads(line) for line in log if line.strip()]
    known = suites(sys.argv[2])
    total = {"passed": 0, "failed": 0, "skipped": 0}
    rows = []
    servers = set()
    for test in tests:
        # With several suites in the log, Meson writes "project:suite / name".
        test["name"] = test["name"].rpartition(" / ")[2]
        test["full_name"] = suite_of(test, known) + "/" + test["name"]
    for test in sorted(tests, key=lambda test: test["full_name"]):
        counts = count(test)
        servers.update(SERVER.findall(test.get("stdout", "")))
        if counts["failed"]:
            show(test)
        for kind, n in counts.items():
            total[kind] += n
        rows.append(f"{test['full_name']:44} {counts['passed']:5} passed "
                    f"{counts['failed']:4} failed {counts['skipped']:4} skipped "
                    f"{test['duration']:7.1f} s  {test['result']}")
    print("\n".join(rows))
    if servers:
        print("on " + ", ".join(" ".join(server) for server in sorted(servers)))
    if not tests:
        print("no test ran: is there a suite of that name? (meson test --list)")
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**total))
    sys.exit(1 if total["failed"] or not tests else 0)


if __name__ == "__main__":
    main()
