"""Tests of an installed pawl: what lies where, and that two projects of others can use it."""
import glob
import os
import shlex
import shutil
import subprocess

from harness import BUILD, SOURCE, Skip, run, run_tests, temporary_folder

FOLDER = temporary_folder()
DESTDIR = os.path.join(FOLDER.name, "dest")


def install():
    run("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", DESTDIR)
    pc_files = glob.glob(DESTDIR + "/**/pawl.pc", recursive=True)
    assert len(pc_files) == 1, pc_files
    # As if DESTDIR were where it was configured for; a sysroot would move the other libraries too.
    with open(pc_files[0], "r+", encoding="utf-8") as package:
        text = package.read()
        assert "prefix=/usr/local\n" in text, text
        package.seek(0)
        package.write(text.replace("prefix=/usr/local\n", f"prefix={DESTDIR}/usr/local\n"))
    return pc_files[0]


PC_FILE = install()
LIBDIR = os.path.dirname(os.path.dirname(PC_FILE))
ENVIRONMENT = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(PC_FILE), LD_LIBRARY_PATH=LIBDIR)


def sample(name):
    """A copy of a sample project, outside the source tree."""
    folder = os.path.join(FOLDER.name, name)
    shutil.rmtree(folder, ignore_errors=True)
    return shutil.copytree(os.path.join(SOURCE, "examples", name), folder)


def needed(program):
    return run("readelf", "--dynamic", program)


def test_files_are_where_they_belong():
    assert os.path.isfile(os.path.join(DESTDIR, "usr/local/include/pawl.h"))
    for name in ("libpawl.so", "libpawl.so.0", "libpawl.so.0.1.0", "libpawl.a"):
        assert os.path.exists(os.path.join(LIBDIR, name)), name


def test_no_internal_header_is_installed():
    headers = glob.glob(DESTDIR + "/**/*.h", recursive=True)
    assert [os.path.basename(path) for path in headers] == ["pawl.h"], headers


def test_archive_holds_its_objects():
    # A thin archive would only point into the build folder.
    with open(os.path.join(LIBDIR, "libpawl.a"), "rb") as archive:
        assert archive.read(8) == b"!<arch>\n"


def test_library_has_no_search_path():
    assert "PATH)" not in needed(os.path.join(LIBDIR, "libpawl.so"))


def test_version_of_the_package_is_that_of_the_library():
    assert run("pkg-config", "--modversion", "pawl", env=ENVIRONMENT).strip() == "0.1.0"


def test_static_link_names_every_library():
    out = run("pkg-config", "--libs", "--static", "pawl", env=ENVIRONMENT)
    for name in ("-lpawl", "-lhiredis", "-lssl", "-lcrypto", "-levent_core"):
        assert name in out.split(), out
    assert "-lhiredis" not in run("pkg-config", "--libs", "pawl", env=ENVIRONMENT)


def test_pkg_config_sample_runs():
    folder = sample("pkgconfig")
    run("make", "-C", folder, env=ENVIRONMENT)
    program = os.path.join(folder, "sample")
    assert run(program, env=ENVIRONMENT).startswith("pawl 0.1.0: "), program
    assert "libpawl.so.0" in needed(program)


def test_pkg_config_sample_runs_statically_linked():
    folder = sample("pkgconfig")
    run("make", "-C", folder, "STATIC=1", env=ENVIRONMENT)
    program = os.path.join(folder, "sample")
    assert run(program).startswith("pawl 0.1.0: "), program
    assert "libpawl.so" not in needed(program)


def test_cmake_sample_runs():
    if shutil.which("cmake") is None:
        raise Skip("no cmake here")
    folder = sample("cmake")
    out = os.path.join(folder, "out")
    run("cmake", "-S", folder, "-B", out, env=ENVIRONMENT)
    run("cmake", "--build", out, env=ENVIRONMENT)
    assert run(os.path.join(out, "sample"), env=ENVIRONMENT).startswith("pawl 0.1.0: ")


def test_uninstalled_package_file_is_found():
    # For programs that are built beside pawl, before it is installed.
    folder = os.path.join(BUILD, "meson-uninstalled")
    done = subprocess.run(["pkg-config", "--libs", "pawl"], check=True, capture_output=True,
                          text=True, env=dict(os.environ, PKG_CONFIG_PATH=folder))
    assert "-L" + os.path.join(BUILD, "src") in shlex.split(done.stdout), done.stdout


if __name__ == "__main__":
    run_tests(globals())
