"""Tests of how binaries are built, and that the check sees one that is not hardened."""
import glob
import json
import os

from harness import BUILD, run, run_tests, run_tool, temporary_folder, write

SHARED = os.path.join(BUILD, "src", "libpawl.so")


def test_library_and_programs_are_hardened():
    programs = [os.path.realpath(path) for path in glob.glob(os.path.join(BUILD, "bin", "*"))]
    run_tool("check_hardening.py", SHARED, *programs)


def test_library_is_compiled_with_checks():
    with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as database:
        commands = [entry["command"] for entry in json.load(database)
                    if "libpawl.a.p" in entry["output"]]
    assert commands
    for command in commands:
        assert "-fstack-protector-strong" in command, command
        assert "-D_FORTIFY_SOURCE=2" in command, command
        assert "-fvisibility=hidden" in command, command


def test_library_needs_no_more_than_it_says():
    needed = [line.split("[")[1].split("]")[0]
              for line in run("readelf", "--dynamic", SHARED).splitlines() if "(NEEDED)" in line]
    allowed = ("libevent_core-", "libevent_extra-", "libevent_openssl-", "libevent-", "libhiredis",
               "libssl.", "libcrypto.", "libc.", "ld-linux", "libpthread.", "libm.")
    for name in needed:
        assert name.startswith(allowed), name


def test_check_sees_a_soft_binary():
    with temporary_folder() as folder:
        source = write(folder, "soft.c", "int main(void) { return 0; }\n")
        soft = os.path.join(folder, "soft")
        run(os.environ.get("CC", "cc"), "-fno-pie", "-no-pie", "-Wl,-z,lazy", "-Wl,-z,norelro",
            "-Wl,-z,execstack", "-Wl,-rpath,lib", "-o", soft, source)
        out = run_tool("check_hardening.py", soft, ok=False)
        for problem in ("position independent", "RELRO", "lazily", "executable stack", "'lib'"):
            assert problem in out, out


if __name__ == "__main__":
    run_tests(globals())
