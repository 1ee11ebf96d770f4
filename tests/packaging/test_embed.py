"""Tests of tools/embed.py: what a C program sees of a script is what the server will be sent."""
import hashlib
import os

from harness import SOURCE, run, run_tests, run_tool, temporary_folder, write

SCRIPT = """-- a comment of its own
local a = "x\\\\y" -- kept: only whole lines go

   local b = 'what??=' .. '\u63d0\u4ea4' .. '1'
\t-- indented comment
return { a, "quote \\" %d", b }
"""
STRIPPED = """
local a = "x\\\\y" -- kept: only whole lines go

local b = 'what??=' .. '\u63d0\u4ea4' .. '1'

return { a, "quote \\" %d", b }
"""
PRINTER = """
#include <stdio.h>
#include <string.h>
#include "backend/redis/script_texts.h"
int main(void)
{
    for (size_t i = 0; pawli_script_texts[i] != NULL; i++) {
        const struct pawli_script_text *s = pawli_script_texts[i];
        printf("%s %zu %d %s\\n%s", s->name, s->len, strlen(s->text) == s->len, s->sha, s->text);
    }
    return 0;
}
"""


def embedded(scripts):
    """Embed scripts (name to text), and give what a C program prints of them."""
    with temporary_folder() as folder:
        paths = [write(folder, name + ".lua", text) for name, text in scripts.items()]
        source = os.path.join(folder, "texts.c")
        run_tool("embed.py", source, *paths)
        program = os.path.join(folder, "program")
        run(os.environ.get("CC", "cc"), "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
            "-I", os.path.join(SOURCE, "src"), "-o", program, source,
            write(folder, "main.c", PRINTER))
        return run(program)


def expected(name, text):
    data = text.encode()
    return f"{name} {len(data)} 1 {hashlib.sha1(data).hexdigest()}\n{text}"


def test_comments_go_and_lines_stay():
    assert embedded({"one": SCRIPT}) == expected("one", STRIPPED)


def test_order_is_that_of_the_arguments():
    assert embedded({"b": "return 1\n", "a-x": "return 2\n"}) == \
        expected("b", "return 1\n") + expected("a-x", "return 2\n")


def test_no_script_is_no_error():
    assert embedded({}) == ""


def test_missing_newline_is_added():
    assert embedded({"one": "return 1"}) == expected("one", "return 1\n")


def test_a_long_script_passes():
    text = "".join(f"local v{i} = {i}\n" for i in range(1000))
    assert embedded({"long": text}) == expected("long", text)


def test_an_included_part_stands_in_its_place():
    with temporary_folder() as folder:
        write(folder, "part.inc.lua", "-- of the part\nlocal p = 1\n")
        script = write(folder, "one.lua", "local a = 1\n--@include part\nreturn a + p\n")
        source = os.path.join(folder, "texts.c")
        run_tool("embed.py", source, script)
        with open(source, encoding="ascii") as made:
            text = made.read()
    sha = hashlib.sha1(b"local a = 1\n\nlocal p = 1\nreturn a + p\n").hexdigest()
    assert sha in text, text


def test_long_brackets_are_refused():
    with temporary_folder() as folder:
        for text in ("x = [[\n-- text\n]]\n", "--[==[\nreturn 1\n]==]\n"):
            out = run_tool("embed.py", os.path.join(folder, "out.c"),
                           write(folder, "bad.lua", text), ok=False)
            assert "long brackets" in out, out


if __name__ == "__main__":
    run_tests(globals())
