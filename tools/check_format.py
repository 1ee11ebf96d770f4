#!/usr/bin/env python3
"""Check C files against .clang-format, or mend them: check_format.py [--fix] FILE...

Blanks before a comment that ends a line, inside comments and before the backslash of a macro are
the author's business: they align things by hand.

Versions of clang-format break lines differently. Debian 12's decides; with another one differences
are shown and do not count."""
import concurrent.futures
import difflib
import os
import re
import subprocess
import sys


REFERENCE = 14


def version():
    out = subprocess.run(["clang-format", "--version"], check=True, capture_output=True, text=True)
    return int(re.search(r"version (\d+)", out.stdout).group(1))


def normal(text):
    """The lines with the blanks that do not count taken out, and their number unchanged."""
    lines = []
    in_comment = False
    for line in text.splitlines():
        line = re.sub(r"[ \t]+\\$", r" \\", line)
        if in_comment:
            line = " ".join(line.split())
        else:
            line = re.sub(r"(?<=\S)[ \t]+/\*", " /*", line)
        start, end = line.rfind("/*"), line.rfind("*/")
        if start != end:
            in_comment = start > end
        lines.append(line)
    return lines


def texts(path):
    with open(path, encoding="utf-8") as source:
        text = source.read()
    return text, subprocess.run(["clang-format", "--style=file", path], check=True,
                                capture_output=True, text=True).stdout


def fix(path):
    """Take over what counts, and leave the rest as the author aligned it."""
    text, wanted = texts(path)
    old, new, lines = text.splitlines(), wanted.splitlines(), []
    matcher = difflib.SequenceMatcher(None, normal(text), normal(wanted), autojunk=False)
    for kind, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        lines += old[old_from:old_to] if kind == "equal" else new[new_from:new_to]
    fixed = "\n".join(lines) + "\n"
    if fixed != text:
        with open(path, "w", encoding="utf-8") as out:
            out.write(fixed)


def check(path):
    text, wanted = texts(path)
    if normal(text) == normal(wanted):
        return ""
    return "\n".join(difflib.unified_diff(normal(text), normal(wanted), path, path + " (formatted)",
                                          n=1, lineterm=""))


def main():
    if sys.argv[1:2] == ["--fix"]:
        for path in sys.argv[2:]:
            fix(path)
        return
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        diffs = [diff for diff in pool.map(check, sys.argv[1:]) if diff]
    if diffs:
        print("\n".join(diffs))
        print(f"{len(diffs)} files are not formatted; ./dev format mends them")
    if diffs and version() != REFERENCE:
        print(f"(not counted: this is clang-format {version()}, and {REFERENCE} decides)")
        return
    sys.exit(1 if diffs else 0)


if __name__ == "__main__":
    main()
