"""Tests of ./dev without a network: its words, and how it installs, with apt played by a stub."""
import os

from harness import SOURCE, run, run_tests, temporary_folder, write

DEV = os.path.join(SOURCE, "dev")

# Stands in for the machine: $installed, $offered and $after_update are lists of packages; what is
# done is printed.
STUB = """
set -eu
top=$1
say() { echo "say $*"; }
fail() { echo "fail $*"; exit 1; }
. "$SOURCE/tools/dev-install.sh"
has() { case " $1 " in *" $2 "*) return 0 ;; esac; return 1; }
is_installed() { has "$installed" "$1"; }
is_offered() { has "$offered" "$1"; }
as_root()
{
    echo "root $*"
    case "$*" in
    *update*) ! has "$broken" update || return 1; offered=$after_update ;;
    *install*) ! has "$broken" install || return 100 ;;
    esac
}
install_groups $groups
echo end
"""
LIST = """# a comment
build gcc
build new|old
test gcc
test rare optional
"""


def install(groups="build", installed="", offered="", after_update="", broken="", ok=True):
    with temporary_folder() as folder:
        write(folder, "tools/packages.list", LIST)
        environment = dict(os.environ, SOURCE=SOURCE, groups=groups, installed=installed,
                           offered=offered, after_update=after_update, broken=broken)
        out = run("sh", "-c", STUB, "sh", folder, env=environment, ok=ok)
    # The guard against services that start by themselves is not what is looked at here.
    return [line for line in out.splitlines() if "policy-rc.d" not in line]


def installs(out):
    return [line.split("install -q -y --no-install-recommends ")[1].split()
            for line in out if line.startswith("root env")]


def test_nothing_missing_touches_nothing():
    for packages in ("gcc new", "gcc old"):
        assert install(installed=packages) == ["end"]


def test_missing_is_installed_without_update():
    out = install(installed="old", offered="gcc")
    assert installs(out) == [["gcc"]] and out[-1] == "end", out
    assert not any("update" in line for line in out), out


def test_first_alternative_on_offer_is_taken():
    assert installs(install(offered="gcc old new")) == [["gcc", "new"]]
    assert installs(install(offered="gcc old")) == [["gcc", "old"]]


def test_lists_are_updated_when_nothing_is_on_offer():
    out = install(offered="", after_update="gcc old")
    assert any("apt-get update" in line for line in out), out
    assert installs(out) == [["gcc", "old"]], out


def test_a_package_that_does_not_exist_is_named():
    out = install(offered="gcc", after_update="gcc", ok=False)
    assert any(line.startswith("fail apt offers none of: new|old") for line in out), out


def test_optional_may_be_missing():
    assert install("test", installed="gcc") == ["end"]
    assert installs(install("test", installed="gcc", offered="rare")) == [["rare"]]


def test_groups_share_packages():
    assert installs(install("build test", installed="old", offered="gcc rare")) == [["gcc", "rare"]]


def test_failed_install_is_tried_once_more_with_new_lists():
    out = install(offered="gcc new", after_update="gcc new", broken="install", ok=False)
    assert installs(out) == [["gcc", "new"]] * 2, out
    assert any(line.startswith("fail apt-get install failed") for line in out), out


def test_failed_update_says_what_to_do():
    out = install(broken="update", ok=False)
    assert any("apt-get update failed" in line and "network" in line for line in out), out


def test_help_from_any_folder_names_every_command():
    with temporary_folder() as folder:
        out = run(DEV, "help", cwd=folder)
    for word in ("run", "stop", "test", "build", "lint", "format", "sanitize", "bench", "install",
                 "clean"):
        assert f"  {word}" in out, word
    assert run(DEV) == out


def test_wrong_words_are_refused():
    assert "'nonsense' is no command" in run(DEV, "nonsense", ok=False)
    assert "is none of address" in run(DEV, "sanitize", "nonsense", ok=False)
    assert "needs one of" in run(DEV, "sanitize", ok=False)
    for args in (["--port"], ["--port", "x"], ["--port", "0"], ["--port", "65534"], ["--nonsense"]):
        assert "dev: run: " in run(DEV, "run", *args, ok=False), args


def test_every_package_line_is_understood():
    with open(os.path.join(SOURCE, "tools/packages.list"), encoding="utf-8") as packages:
        for line in packages:
            words = line.split("#")[0].split()
            assert len(words) in (0, 2) or (len(words) == 3 and words[2] == "optional"), line


if __name__ == "__main__":
    run_tests(globals())
