#!/usr/bin/env python3
"""Embed Lua scripts in C: embed.py OUTPUT.c SCRIPT.lua...

Whole-line comments and indentation are left out of what is sent to the server, but each line stays
where it was, so that line numbers in the server's messages fit the file (below an included part
they count its lines too). The SHA1 is that of the stripped text. Declared in
src/backend/redis/script_texts.h."""
import hashlib
import os
import re
import sys


def strip_line(line):
    line = line.strip()
    return "" if line.startswith("--") else line


def include(source, folder):
    """Replace each line "--@include NAME" by the text of NAME.inc.lua beside the script."""
    def text(match):
        with open(os.path.join(folder, match[1] + ".inc.lua"), encoding="utf-8") as part:
            return part.read()
    return re.sub(r"^[ \t]*--@include (\w+)$\n", text, source, flags=re.M)


def strip_script(source, name):
    if "[[" in source or re.search(r"\[=+\[", source):
        sys.exit(f"embed.py: {name}: long brackets are not supported")
    lines = [strip_line(line) for line in source.splitlines()]
    return "\n".join(lines).rstrip("\n") + "\n"


def c_string(line):
    out = []
    for byte in line.encode("utf-8"):
        char = chr(byte)
        if char in '"\\?':  # ? lest two of them begin a trigraph
            out.append("\\" + char)
        elif 32 <= byte < 127:
            out.append(char)
        else:
            out.append(f"\\{byte:03o}")
    return '"' + "".join(out) + '\\n"'


def c_script(name, text):
    symbol = "pawli_script_" + name.replace("-", "_")
    data = text.encode("utf-8")
    lines = "\n".join("        " + c_string(line) for line in text[:-1].split("\n"))
    definition = (
        f"extern const struct pawli_script_text {symbol};\n"
        f"const struct pawli_script_text {symbol} = {{\n"
        f'    .name = "{name}",\n'
        f"    .text =\n{lines},\n"
        f"    .len = {len(data)},\n"
        f'    .sha = "{hashlib.sha1(data).hexdigest()}",\n'
        f"}};\n\n")
    return symbol, definition


def main():
    output, paths = sys.argv[1], sys.argv[2:]
    parts = ['/* Made by tools/embed.py; not to be edited. */\n',
             '#include "backend/redis/script_texts.h"\n\n',
             # C11 guarantees 4095 bytes only; gcc and clang take any length.
             '#pragma GCC diagnostic ignored "-Woverlength-strings"\n\n']
    symbols = []
    for path in paths:
        name = os.path.basename(path).removesuffix(".lua")
        with open(path, encoding="utf-8") as script:
            source = include(script.read(), os.path.dirname(path))
        symbol, definition = c_script(name, strip_script(source, name))
        symbols.append(symbol)
        parts.append(definition)
    parts.append("const struct pawli_script_text *const pawli_script_texts[] = {\n")
    parts += [f"    &{symbol},\n" for symbol in symbols]
    parts.append("    NULL,\n};\n")
    with open(output, "w", encoding="ascii") as out:
        out.write("".join(parts))


if __name__ == "__main__":
    main()
