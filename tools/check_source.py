#!/usr/bin/env python3
"""Check the rules of the house that no other tool knows: check_source.py FILE...

Length of lines, functions and files; functions and constructs that are not used here; a first
comment in each C file; and what the files of a folder may include, which keeps decisions free of
sockets, clocks and threads, and programs on the public header."""
import json
import os
import re
import subprocess
import sys

MAX_LINE = 100
MAX_FUNCTION = 60
MAX_FILE = 800

BANNED = re.compile(
    r"(?<![\w.>])(strcpy|strcat|sprintf|vsprintf|gets|strtok|atoi|atol|atof|system|popen|alloca|"
    r"signal|setlocale|localeconv|strncpy|strncat|mktemp|tmpnam)\s*\(")
BANNED_IN_LIBRARY = re.compile(
    r"(?<![\w.>])(printf|vprintf|puts|putchar|perror|exit|_exit|abort|quick_exit|assert_fail|"
    r"sigaction|syslog|err|errx|warn|warnx)\s*\(|\b(stdout|stderr)\b")
MARKS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")

# What a folder of src/ may include of ours, and which system headers it may not.
SYSTEM_IO = {"sys/socket.h", "netinet/in.h", "arpa/inet.h", "netdb.h", "sys/un.h", "poll.h",
             "sys/epoll.h", "unistd.h", "sys/time.h", "time.h", "pthread.h", "threads.h",
             "event2/event.h", "hiredis/hiredis.h", "openssl/ssl.h", "stdio.h"}
FOLDERS = {
    "src/core": (("core/", "util/"), SYSTEM_IO - {"stdio.h"}),
    "src/util": (("util/", "core/"), {"hiredis/hiredis.h", "openssl/ssl.h"}),
    "src/net": (("net/", "util/", "core/"), set()),
    "src/backend": (("backend/", "net/", "util/", "core/"), set()),
    "src/engine": (("engine/", "backend/", "net/", "util/", "core/"), set()),
}
PROGRAMS = ("cli", "service", "examples")

problems = []


def report(path, number, text):
    problems.append(f"{path}:{number}: {text}")


def without_comments_and_strings(text):
    """C text with comments and the insides of literals blanked, lines kept."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def blank(match):
        found = match.group(0)
        if found.startswith("//"):
            return "//"
        if found.startswith("/*"):
            return re.sub(r"[^\n]", " ", found)
        return found[0] + " " * (len(found) - 2) + found[-1]

    return pattern.sub(blank, text)


def folder_of(path):
    for folder in FOLDERS:
        if path.startswith(folder + "/"):
            return folder
    return None


def check_include(path, number, line):
    match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
    if match is None:
        return
    quoted, name = match.group(1) == '"', match.group(2)
    folder = folder_of(path)
    if folder is not None:
        allowed, forbidden = FOLDERS[folder]
        if quoted and not name.startswith(allowed):
            report(path, number, f'{folder} must not include "{name}"')
        if not quoted and name in forbidden:
            report(path, number, f"{folder} must not include <{name}>")
    elif path.split("/")[0] in PROGRAMS and quoted:
        # The nearest meson.build marks a program's own folder.
        base = os.path.dirname(path)
        while base and not os.path.exists(os.path.join(base, "meson.build")):
            base = os.path.dirname(base)
        found = [os.path.normpath(os.path.join(start, name))
                 for start in (os.path.dirname(path), base)]
        if not any(os.path.exists(f) and f.startswith(base + "/") for f in found):
            report(path, number, f'a program includes <pawl.h> and files of its own; not "{name}"')


def check_c(path, text):
    if not text.lstrip().startswith("/*"):
        report(path, 1, "the first lines must be a comment that says what the file is")
    library = path.startswith("src/")
    code = without_comments_and_strings(text)
    for number, (line, raw) in enumerate(zip(code.splitlines(), text.splitlines()), 1):
        found = BANNED.search(line)
        if found:
            report(path, number, f"{found.group(1)}() is not used here")
        found = BANNED_IN_LIBRARY.search(line) if library else None
        if found:
            report(path, number, f"the library does not use {found.group(1) or found.group(2)}")
        if "//" in line:
            report(path, number, "comments are /* like this */")
        check_include(path, number, raw)


def check_text(path, text):
    lines = text.splitlines()
    if len(lines) > MAX_FILE and path.endswith((".c", ".h", ".py", ".sh", ".lua")):
        report(path, MAX_FILE + 1, f"{len(lines)} lines; a file has at most {MAX_FILE}")
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE:
            report(path, number, f"{len(line)} columns; a line has at most {MAX_LINE}")
        if line != line.rstrip():
            report(path, number, "blanks at the end of the line")
        if "\t" in line and not path.endswith((".sym", "Makefile")):
            report(path, number, "a tab")
        if MARKS.search(line) and os.path.basename(path) != "check_source.py":
            report(path, number, "an unfinished place")
    if text and not text.endswith("\n"):
        report(path, len(lines), "no newline at the end")


def check_functions(paths):
    if not paths:
        return
    tags = subprocess.run(
        ["ctags", "--languages=C", "--langmap=C:.c.h", "--kinds-C=f", "--fields=+ne",
         "--output-format=json", "-f", "-", *paths],
        check=True, capture_output=True, text=True).stdout
    for line in tags.splitlines():
        tag = json.loads(line)
        length = tag.get("end", tag["line"]) - tag["line"] + 1
        if length > MAX_FUNCTION:
            report(tag["path"], tag["line"],
                   f"{tag['name']} has {length} lines; a function has at most {MAX_FUNCTION}")


def main():
    c_files = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as source:
            text = source.read()
        check_text(path, text)
        if path.endswith((".c", ".h")):
            check_c(path, text)
            c_files.append(path)
    check_functions(c_files)
    print("\n".join(problems), end="\n" if problems else "")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
