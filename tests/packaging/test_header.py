"""Tests of <pawl.h>: it stands alone, in C and in C++, for each compiler that is there."""
import os
import shutil

from harness import BUILD, SOURCE, Skip, run, run_tests, temporary_folder, write

INCLUDE = os.path.join(SOURCE, "include")
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wundef", "-Werror"]

# Uses what only a header can get wrong: initialisers, the enum, inline functions, the attribute.
PROGRAM = """
#include <pawl.h>
#include <pawl.h>
#include <stdio.h>

int main(void)
{
    PAWL_SCOPED struct pawl_lock *lock = NULL;
    struct pawl_lock_options lock_opts = PAWL_LOCK_OPTIONS_INIT;
    struct pawl_client_options client_opts = PAWL_CLIENT_OPTIONS_INIT;
    int64_t longest = PAWL_MAX_HOLD_MAX_MS;

    if (lock_opts.size != sizeof lock_opts || lock_opts.lease_ms != PAWL_DEFAULT)
        return 1;
    if (client_opts.size != sizeof client_opts || client_opts.lease_ms != 30000)
        return 2;
    if (longest != 2592000 * INT64_C(1000) || !pawl_is_lost(PAWL_LOST_REVOKED))
        return 3;
    puts(pawl_version());
    return lock != NULL;
}
"""


def compile_with(compiler, standard, suffix, link):
    if shutil.which(compiler) is None:
        raise Skip(f"no {compiler} here")
    with temporary_folder() as folder:
        source = write(folder, "program" + suffix, PROGRAM)
        program = os.path.join(folder, "program")
        args = [compiler, "-std=" + standard, *WARNINGS, "-I", INCLUDE, source]
        if not link:
            run(*args, "-c", "-o", program)
            return
        libraries = os.path.join(BUILD, "src")
        run(*args, "-o", program, "-L", libraries, "-lpawl", "-Wl,-rpath," + libraries)
        assert run(program).strip() == "0.1.0"


def test_gcc_c11():
    compile_with("gcc", "c11", ".c", True)


def test_gcc_c99():
    compile_with("gcc", "c99", ".c", False)


def test_clang_c11():
    compile_with("clang", "c11", ".c", True)


def test_gxx_11():
    compile_with("g++", "c++11", ".cc", True)


def test_gxx_20():
    compile_with("g++", "c++20", ".cc", False)


def test_clangxx_17():
    compile_with("clang++", "c++17", ".cc", True)


if __name__ == "__main__":
    run_tests(globals())
