#!/usr/bin/env python3
"""Check what the libraries define for others: check_symbols.py HEADER libpawl.so libpawl.a

The shared library exports exactly the calls of the header; the archive, whose inside is visible to
programs that link it, stays within the names that belong to pawl."""
import re
import subprocess
import sys


def defined(*args):
    out = subprocess.run(["nm", "--defined-only", "--extern-only", *args], check=True,
                         capture_output=True, text=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return {row[2].split("@")[0] for row in rows if len(row) == 3 and row[1] != "A"}


def declared(header):
    with open(header, encoding="utf-8") as source:
        text = re.sub(r"/\*.*?\*/", " ", source.read(), flags=re.S)
    text = re.sub(r"static inline[^{]*\{.*?\n\}", " ", text, flags=re.S)
    text = re.sub(r"^\s*#.*(?:\\\n.*)*$", " ", text, flags=re.M)
    text = re.sub(r"typedef[^;]*;", " ", text)
    return set(re.findall(r"\b(pawl_\w+)\s*\([^;{]*;", text))


def main():
    header, shared, archive = sys.argv[1:4]
    problems = []
    exported, calls = defined("--dynamic", shared), declared(header)
    for name in sorted(exported - calls):
        problems.append(f"{shared} exports {name}, which the header does not declare")
    for name in sorted(calls - exported):
        problems.append(f"{shared} lacks {name}, which the header declares")
    for name in sorted(defined(archive)):
        if not name.startswith(("pawl_", "pawli_")):
            problems.append(f"{archive} defines {name}, a name that is not pawl's")
    print("\n".join(problems), end="\n" if problems else "")
    print(f"{len(exported)} of {len(calls)} calls exported")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
