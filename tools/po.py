#!/usr/bin/env python3
"""Turn a gettext catalogue into the C table that cli/text.c looks texts up in: po.py OUTPUT PO.

Also for people: po.py --check PO SOURCE... lists texts of the sources that the catalogue lacks."""
import ast
import re
import sys


def read_po(path):
    """msgid -> msgstr, without the header, untranslated and fuzzy entries."""
    pairs, fuzzy, part = {}, False, None
    entry = {"msgid": "", "msgstr": ""}

    def store():
        if entry["msgid"] and entry["msgstr"] and not fuzzy:
            pairs[entry["msgid"]] = entry["msgstr"]

    with open(path, encoding="utf-8") as source:
        for line in source:
            line = line.strip()
            match = re.match(r'(msgid|msgstr)\s+(".*")$', line)
            if match:
                if match.group(1) == "msgid":
                    store()
                    entry, fuzzy = {"msgid": "", "msgstr": ""}, next_fuzzy_of(read_po)
                part = match.group(1)
                entry[part] += ast.literal_eval(match.group(2))
            elif line.startswith('"') and part:
                entry[part] += ast.literal_eval(line)
            elif line.startswith("#,") and "fuzzy" in line:
                read_po.fuzzy = True
    store()
    return pairs


def next_fuzzy_of(function):
    fuzzy, function.fuzzy = getattr(function, "fuzzy", False), False
    return fuzzy


def quote(text):
    """A C string literal of the UTF-8 bytes, octal so that no digit after it joins in."""
    return '"' + "".join(
        chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}"
        for b in text.encode()) + '"'


def texts_of(path):
    """The English texts of a C source: what stands in _( and N_(."""
    with open(path, encoding="utf-8") as source:
        text = source.read()
    found = []
    for match in re.finditer(r'\bN?_\(\s*((?:"(?:\\.|[^"\\])*"\s*)+)\)', text):
        literals = re.findall(r'"(?:\\.|[^"\\])*"', match.group(1))
        found.append("".join(ast.literal_eval(literal) for literal in literals))
    return found


def main():
    if sys.argv[1] == "--check":
        pairs = read_po(sys.argv[2])
        missing = [text for path in sys.argv[3:] for text in texts_of(path) if text not in pairs]
        for text in missing:
            print("missing:", repr(text))
        sys.exit(1 if missing else 0)
    pairs = read_po(sys.argv[2])
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write("/* Made by tools/po.py. */\n#include \"text.h\"\n\n")
        out.write("const struct text_pair text_zh[] = {\n")
        for english in sorted(pairs, key=lambda text: text.encode()):
            out.write(f"    {{ {quote(english)},\n      {quote(pairs[english])} }},\n")
        if not pairs:
            out.write('    { "", "" },\n')
        out.write("};\n\nconst size_t text_n_zh = sizeof text_zh / sizeof text_zh[0];\n")


if __name__ == "__main__":
    main()
