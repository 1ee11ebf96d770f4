#!/usr/bin/env python3
"""The documents tell the truth as far as a machine can see: programs compile and run, statements
and commands work, links resolve, and the two languages have the same sections and code.

Blocks of code are marked behind the language:
  c program       a whole program: compiled; "c program run" is also run, with a Redis as argument
  c unit          one file of a program: compiled
  sql sqlite      tried in SQLite
  sh redis        redis-cli commands, tried in order on the server of the page
Every C block must be one of these. Ends with "N passed, N failed, N skipped"."""
import ctypes
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

SOURCE = os.environ.get("PAWL_SOURCE", os.getcwd())
BUILD = os.environ.get("PAWL_BUILD", os.path.join(SOURCE, "build"))
sys.path.append(os.path.join(SOURCE, "tests", "lib"))
from server_choice import client_program, server_program  # noqa: E402

FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion",
         "-Werror"]
PAIRS = [("README.md", "README.zh-CN.md"), ("docs/guide.md", "docs/guide.zh-CN.md"),
         ("docs/promises.md", "docs/promises.zh-CN.md")]
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
HEADING = re.compile(r"^(#+) +(.+)$", re.M)
LINK = re.compile(r"\]\(([^)\s]+)\)")

failures = []
n_passed = 0
n_skipped = 0


def check(name, problem):
    """Count one case: @problem is empty if all is well."""
    global n_passed
    if problem:
        failures.append(name)
        print(f"FAILED {name}\n{problem.rstrip()}\n")
    else:
        n_passed += 1


def skip(name, why):
    global n_skipped
    n_skipped += 1
    print(f"skipped {name}: {why}")


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Redis:
    """A private server on a unix socket; .url is None if there is no server to start."""

    def __init__(self, folder):
        self.socket = os.path.join(folder, "s")
        self.url = None
        program = server_program()
        self.process = None
        if program is None:
            return
        self.process = subprocess.Popen(
            [program, "--port", "0", "--unixsocket", self.socket, "--dir", folder, "--save", "",
             "--appendonly", "no", "--maxmemory-policy", "noeviction"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=die_with_parent)
        end = time.monotonic() + 10
        while self.cli("ping").stdout.strip() != "PONG":
            if time.monotonic() > end or self.process.poll() is not None:
                raise SystemExit("the private Redis does not answer")
            time.sleep(0.02)
        self.url = "redis+unix://" + self.socket

    def cli(self, *args):
        return subprocess.run([client_program(), "-e", "-s", self.socket, *args],
                              capture_output=True, text=True, timeout=10)

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=10)


def run(command, timeout=60):
    """Empty if @command succeeds, else what it said."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=timeout)
    except subprocess.TimeoutExpired:
        return f"{command[0]} did not end within {timeout} s"
    if done.returncode == 0:
        return ""
    return f"{' '.join(command)}\nexit code {done.returncode}\n{done.stdout}{done.stderr}"


def documents():
    for folder, subfolders, names in os.walk(SOURCE):
        subfolders[:] = sorted(d for d in subfolders if d not in ("node_modules", "subprojects")
                               and not d.startswith((".", "build")))
        for name in sorted(names):
            if name.endswith(".md"):
                yield os.path.relpath(os.path.join(folder, name), SOURCE)


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def blocks(text):
    """(marks, code, line) of each block of code."""
    for match in BLOCK.finditer(text):
        yield match.group(1).split(), match.group(2), text.count("\n", 0, match.start()) + 1


# ---- code ----

def compile_c(code, folder, is_program):
    source = os.path.join(folder, "snippet.c")
    output = os.path.join(folder, "snippet")
    with open(source, "w", encoding="utf-8") as file:
        file.write(code)
    command = shlex.split(os.environ.get("CC", "cc")) + FLAGS + ["-I", f"{SOURCE}/include"]
    if '#include "' in code:
        command += ["-I", f"{SOURCE}/src"]
    command.append(source)
    if not is_program:
        return run(command + ["-c", "-o", output + ".o"])
    command += ["-o", output, "-L", f"{BUILD}/src", f"-Wl,-rpath,{BUILD}/src", "-lpawl", "-pthread"]
    if "<sqlite3.h>" in code:
        command.append("-lsqlite3")
    return run(command)


def try_c(name, marks, code, folder, redis):
    if "program" not in marks and "unit" not in marks:
        check(name, "this C block is marked neither as a program nor as a unit")
        return
    problem = compile_c(code, folder, "program" in marks)
    if problem or "run" not in marks:
        check(name, problem)
    elif redis.url is None:
        skip(name, "compiled, but there is no Redis to run it with")
    else:
        check(name, run([os.path.join(folder, "snippet"), redis.url], timeout=20))


def try_sql(code, database):
    """Parameters are any resource, token and owner."""
    try:
        for statement in filter(str.strip, code.split(";")):
            database.execute(statement, ("r", 1, "o")[:statement.count("?")])
        return ""
    except sqlite3.Error as error:
        return str(error)


def try_redis_cli(code, redis):
    for line in filter(str.strip, code.splitlines()):
        words = shlex.split(line, comments=True)
        if not words:
            continue
        if words[0] != "redis-cli":
            return f"'{line}' does not begin with redis-cli"
        done = redis.cli(*words[1:])
        if done.returncode != 0:
            return f"{line}\n{done.stdout}{done.stderr}"
    return ""


def test_code(path, folder, redis):
    database = sqlite3.connect(":memory:")
    for marks, code, line in blocks(read(path)):
        name = f"{path}:{line}"
        if marks[:1] == ["c"]:
            try_c(name, marks, code, folder, redis)
        elif marks[:2] == ["sql", "sqlite"]:
            check(name, try_sql(code, database))
        elif marks[:2] == ["sh", "redis"]:
            if redis.url is None:
                skip(name, "there is no Redis")
            else:
                check(name, try_redis_cli(code, redis))
    database.close()


# ---- text ----

def anchor(heading):
    """GitHub's: lower case, punctuation away, blanks to hyphens."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


def anchors(text):
    return {anchor(heading) for _, heading in HEADING.findall(BLOCK.sub("", text))}


def test_links(path):
    text = BLOCK.sub("", read(path))
    text = re.sub(r"`[^`\n]*`", "", text)
    wrong = []
    for link in LINK.findall(text):
        target, _, place = link.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
        if not os.path.exists(os.path.join(SOURCE, file)):
            wrong.append(f"{link}: there is no {file}")
        elif place and file.endswith(".md") and place not in anchors(read(file)):
            wrong.append(f"{link}: {file} has no such heading")
    check(f"links of {path}", "\n".join(wrong))


def test_pair(english, chinese):
    texts = read(english), read(chinese)
    levels = [[len(marks) for marks, _ in HEADING.findall(BLOCK.sub("", text))] for text in texts]
    check(f"sections of {english} and {chinese}",
          "" if levels[0] == levels[1] else f"heading levels differ: {levels[0]} {levels[1]}")
    codes = [[(marks, code) for marks, code, _ in blocks(text)] for text in texts]
    wrong = [f"block {i + 1}:\n{a[1]}--- against\n{b[1]}"
             for i, (a, b) in enumerate(zip(*codes)) if a != b]
    if len(codes[0]) != len(codes[1]):
        wrong.append(f"{len(codes[0])} blocks against {len(codes[1])}")
    check(f"code of {english} and {chinese}", "\n".join(wrong))
    tables = [text.count("\n|") for text in texts]
    check(f"tables of {english} and {chinese}",
          "" if tables[0] == tables[1] else f"{tables[0]} lines against {tables[1]}")


def c_strings(path, macros):
    """The literals of #define lines, joined as the preprocessor would."""
    text = read(path).replace("\\\n", "\n")
    for name, parameters in macros.items():
        body = re.search(r"#define " + name + r"(?:\([^)]*\))?(.*?)(?:\n\n|\n/\*)", text, re.S)
        parts = re.findall(r'"([^"]*)"|\b([abc])\b', body.group(1))
        yield " ".join("".join(part if part else parameters[key] for part, key in parts).split())


def test_fence_sql():
    """The statements in the guide are the library's."""
    numbered = {"a": "?1", "b": "?2", "c": "?3"}
    shipped = list(c_strings("src/core/fence_sql.c", {
        "TABLE_SQL": numbered, "CLAIM_SQL": numbered, "CHECK_SQL": numbered}))
    shown = [" ".join(code.split()) for marks, code, _ in blocks(read("docs/guide.md"))
             if marks[:2] == ["sql", "sqlite"] and "pawl_fence" in code]
    check("the guide's fencing statements", "" if shipped == shown else
          "\n".join(f"shipped: {a}\nshown:   {b}" for a, b in zip(shipped, shown) if a != b) or
          f"{len(shipped)} shipped, {len(shown)} shown")


def test_scripts():
    """Each script has its section in the protocol, and no other does."""
    folder = os.path.join(SOURCE, "src/backend/redis/scripts")
    scripts = {name[:-len(".lua")] for name in os.listdir(folder)
               if name.endswith(".lua") and not name.endswith(".inc.lua")}
    text = read("docs/protocol.md").split("\n## Scripts\n")[1].split("\n## ")[0]
    sections = {name for heading in re.findall(r"^### (.+)$", text, re.M)
                for name in heading.split(", ")}
    check("a section for each script",
          "" if scripts == sections else f"these differ: {sorted(scripts ^ sections)}")


def main():
    folder = tempfile.mkdtemp(prefix="pawl-docs.")
    redis = Redis(folder)
    try:
        for path in documents():
            test_links(path)
            # The translation's code is the original's, byte for byte: test_pair() sees to it.
            if path not in [chinese for _, chinese in PAIRS]:
                test_code(path, folder, redis)
        for english, chinese in PAIRS:
            test_pair(english, chinese)
        test_fence_sql()
        test_scripts()
    finally:
        redis.stop()
        shutil.rmtree(folder)
    print(f"{n_passed} passed, {len(failures)} failed, {n_skipped} skipped")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
