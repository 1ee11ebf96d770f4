#!/usr/bin/env python3
"""Check that binaries are hardened: check_hardening.py FILE...

Position independent, all relocations read-only before main, no executable stack, no search path
that an attacker could fill."""
import re
import subprocess
import sys


def readelf(path):
    return subprocess.run(["readelf", "--wide", "--file-header", "--program-headers", "--dynamic",
                           path], check=True, capture_output=True, text=True).stdout


def check(path):
    text = readelf(path)
    problems = []
    if not re.search(r"Type:\s+DYN", text):
        problems.append("is not position independent")
    if "GNU_RELRO" not in text:
        problems.append("has no RELRO segment")
    if not re.search(r"\(FLAGS(_1)?\).*NOW|\(BIND_NOW\)", text):
        problems.append("binds symbols lazily")
    stack = re.search(r"GNU_STACK\s+(?:0x\w+\s+){5}(\S*)", text)
    if stack is None or "E" in stack.group(1):
        problems.append("has an executable stack")
    for found in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", text):
        for folder in found.split(":"):
            if not folder.startswith(("$ORIGIN", "/")):
                problems.append(f"searches libraries in '{folder}'")
    return [f"{path} {problem}" for problem in problems]


def main():
    problems = [problem for path in sys.argv[1:] for problem in check(path)]
    print("\n".join(problems), end="\n" if problems else "")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
