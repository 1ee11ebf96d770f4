"""Tests of what the libraries define, and that the check sees a name that should not be there."""
import os

from harness import BUILD, SOURCE, run, run_tests, run_tool, temporary_folder, write

HEADER = os.path.join(SOURCE, "include", "pawl.h")
SHARED = os.path.join(BUILD, "src", "libpawl.so")
ARCHIVE = os.path.join(BUILD, "src", "libpawl.a")
CC = os.environ.get("CC", "cc")


def test_libraries_define_only_names_of_pawl():
    print(run_tool("check_symbols.py", HEADER, SHARED, ARCHIVE))


def test_soname_is_that_of_the_abi():
    assert "[libpawl.so.0]" in run("readelf", "--dynamic", SHARED)


def test_symbols_carry_a_version():
    assert "pawl_version@@PAWL_0" in run("nm", "--dynamic", "--with-symbol-versions", SHARED)


def test_check_sees_a_foreign_export():
    with temporary_folder() as folder:
        source = write(folder, "bad.c", "int pawl_secret(void) { return 1; }\n")
        bad = os.path.join(folder, "bad.so")
        run(CC, "-shared", "-fPIC", "-o", bad, source)
        assert "pawl_secret" in run_tool("check_symbols.py", HEADER, bad, ARCHIVE, ok=False)


def test_check_sees_a_call_that_is_missing():
    with temporary_folder() as folder:
        with open(HEADER, encoding="utf-8") as header:
            text = header.read()
        more = write(folder, "more.h", text + "int pawl_not_written(void);\n")
        out = run_tool("check_symbols.py", more, SHARED, ARCHIVE, ok=False)
        assert "lacks pawl_not_written" in out, out


def test_check_sees_a_foreign_name_in_the_archive():
    with temporary_folder() as folder:
        source = write(folder, "bad.c", "int helper(void) { return 1; }\n")
        run(CC, "-c", "-o", os.path.join(folder, "bad.o"), source)
        bad = os.path.join(folder, "bad.a")
        run("ar", "rcs", bad, os.path.join(folder, "bad.o"))
        assert "helper" in run_tool("check_symbols.py", HEADER, SHARED, bad, ok=False)


if __name__ == "__main__":
    run_tests(globals())
