"""Tests of the rules of the house: each is seen to fail on a file that breaks it."""
import os
import shutil

from harness import SOURCE, Skip, run_tests, run_tool, temporary_folder, tool, write

FIRST = "/* what the file is */\n"


def problems(name, text, with_first=True):
    """What the rules say of one file; "" if nothing."""
    with temporary_folder() as folder:
        write(folder, name, (FIRST if with_first else "") + text)
        return run_tool("check_source.py", name, ok=None, cwd=folder)


def refused(name, text, because, **kwargs):
    out = problems(name, text, **kwargs)
    assert because in out, f"{name}: {text!r}: expected {because!r}, got {out!r}"


def allowed(name, text):
    out = problems(name, text)
    assert out == "", f"{name}: {text!r}: {out!r}"


def test_banned_functions():
    for call in ("strcpy(a, b)", "sprintf(a, b)", "atoi(a)", "system(a)", "signal(1, a)",
                 "setlocale(1, a)", "strtok(a, b)", "alloca(1)"):
        refused("cli/a.c", f"void f(void) {{ {call}; }}\n", "is not used here")
    allowed("cli/a.c", 'void f(void) { snprintf(a, 1, "strcpy(a)"); /* strcpy(a) */ }\n')
    allowed("cli/a.c", "void f(void) { pawl_signal(1); x->system(1); }\n")


def test_library_is_silent_and_never_exits():
    for text in ("printf(a)", "exit(1)", "abort()", "fputs(a, stderr)"):
        refused("src/engine/a.c", f"void f(void) {{ {text}; }}\n", "the library does not use")
        allowed("cli/a.c", f"void f(void) {{ {text}; }}\n")


def test_core_has_no_io():
    for name in ("sys/socket.h", "time.h", "pthread.h", "unistd.h"):
        refused("src/core/a.c", f"#include <{name}>\n", "must not include")
    for name in ("engine/a.h", "net/a.h", "backend/a.h"):
        refused("src/core/a.c", f'#include "{name}"\n', "must not include")
    allowed("src/core/a.c", '#include <stdint.h>\n#include "core/a.h"\n#include "util/b.h"\n')


def test_lower_folders_do_not_know_the_upper():
    for folder in ("net", "util"):
        for name in ("engine/a.h", "backend/a.h"):
            refused(f"src/{folder}/a.c", f'#include "{name}"\n', "must not include")
    refused("src/backend/a.c", '#include "engine/a.h"\n', "must not include")
    allowed("src/engine/a.c", '#include "backend/a.h"\n#include "net/a.h"\n')


def test_programs_use_the_public_header_only():
    for folder in ("cli", "service", "examples/orders"):
        refused(f"{folder}/a.c", '#include "core/a.h"\n', "a program includes")
        allowed(f"{folder}/a.c", "#include <pawl.h>\n")
    with temporary_folder() as folder:
        write(folder, "examples/orders/meson.build", "")
        write(folder, "examples/orders/b.h", FIRST)
        write(folder, "examples/orders/sub/a.c", FIRST + '#include "b.h"\n')
        run_tool("check_source.py", "examples/orders/sub/a.c", cwd=folder)


def test_lengths():
    refused("src/core/a.c", "int a; /* " + "x" * 100 + " */\n", "columns")
    allowed("src/core/a.c", "/* " + "x" * 94 + " */\n")
    body = "    a++;\n" * 57  # and three lines around it
    allowed("src/core/a.c", "void f(void)\n{\n" + body + "}\n")
    refused("src/core/a.c", "void f(void)\n{\n" + body + "    a++;\n}\n", "61 lines")
    refused("src/core/a.c", "int a;\n" * 800, "801 lines")
    allowed("src/core/a.c", "int a;\n" * 799)


def test_small_things():
    refused("src/core/a.c", "int a;\n", "first lines", with_first=False)
    refused("src/core/a.c", "int a; // b\n", "comments are")
    refused("src/core/a.c", "int a; \n", "blanks at the end")
    refused("src/core/a.c", "\tint a;\n", "a tab")
    refused("src/core/a.c", "/* " + "TO" + "DO */\n", "unfinished")
    refused("src/core/a.c", "int a;", "no newline")
    allowed("src/core/a.c", 'const char *a = "http://b";\n')


def test_format():
    if shutil.which("clang-format") is None:
        raise Skip("no clang-format here")
    with temporary_folder() as folder:
        shutil.copy(os.path.join(SOURCE, ".clang-format"), folder)
        write(folder, "good.c",
              "int a;   /* aligned */\n#define B  \\\n    do {   \\\n    } while (0)\n")
        write(folder, "bad.c", "int f(int a){return a;}\n")
        run_tool("check_format.py", "good.c", cwd=folder)
        out = run_tool("check_format.py", "good.c", "bad.c", cwd=folder, ok=None)
        assert "bad.c" in out and "good.c" not in out, out
        run_tool("check_format.py", "--fix", "good.c", "bad.c", cwd=folder)
        run_tool("check_format.py", "bad.c", cwd=folder)
        with open(os.path.join(folder, "good.c"), encoding="utf-8") as good:
            assert "int a;   /* aligned */" in good.read()


def test_the_tools_are_there():
    assert os.access(tool("lint.sh"), os.R_OK)


if __name__ == "__main__":
    run_tests(globals())
