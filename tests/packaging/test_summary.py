"""Tests of tools/test_summary.py: what ./dev test ends with is trusted, so it must not lie."""
import json
import os

from harness import run, run_tests, run_tool, temporary_folder, write

CMOCKA_OUT = """[==========] Running 4 test(s).
[ RUN      ] a
[       OK ] a
[ RUN      ] b
[       OK ] b
[ RUN      ] c
[  FAILED  ] c
[ RUN      ] d
[  SKIPPED ] d
[==========] 4 test(s) run.
"""
CMOCKA_ERR = """c: the reason
[  PASSED  ] 2 test(s).
[  SKIPPED ] 1 test(s), listed below:
[  SKIPPED ] d

 1 SKIPPED TEST(S)
[  FAILED  ] 1 test(s), listed below:
[  FAILED  ] c

 1 FAILED TEST(S)
"""


def summary(*tests, ok=True):
    """The lines of the summary of tests, given as (result, stdout, stderr)."""
    with temporary_folder() as folder:
        rows = [{"name": f"t{i}", "command": [f"t{i}"], "result": result, "duration": 0.1,
                 "returncode": 0 if result == "OK" else 1, "stdout": out, "stderr": err}
                for i, (result, out, err) in enumerate(tests)]
        log = write(folder, "log.json", "".join(json.dumps(row) + "\n" for row in rows))
        write(folder, "meson-info/intro-tests.json",
              json.dumps([{"cmd": row["command"], "suite": ["pawl:unit"]} for row in rows]))
        return run_tool("test_summary.py", log, folder, ok=ok).splitlines()


def test_cases_of_cmocka_are_counted():
    lines = summary(("FAIL", CMOCKA_OUT, CMOCKA_ERR), ok=False)
    assert lines[-1] == "2 passed, 1 failed, 1 skipped", lines
    assert "c: the reason" in lines, lines


def test_two_groups_of_one_program_add_up():
    out = "[==========] Running 1 test(s).\n[       OK ] a\n[==========] 1 test(s) run.\n"
    err = "[  PASSED  ] 1 test(s).\n"
    assert summary(("OK", out * 2, err * 2))[-1] == "2 passed, 0 failed, 0 skipped"


def test_servers_are_named_once():
    out = "Redis server v=7.0.15 sha=00000000:0 bits=64\n1 passed, 0 failed, 0 skipped\n"
    lines = summary(("OK", out, ""), ("OK", out, ""))
    assert [line for line in lines if "Redis" in line] == ["on Redis 7.0.15"], lines
    assert lines[-1] == "2 passed, 0 failed, 0 skipped", lines


def test_a_crash_fails_though_cases_passed():
    out = "[==========] Running 3 test(s).\n[ RUN      ] a\n[       OK ] a\n[ RUN      ] b\n"
    lines = summary(("FAIL", out, ""), ok=False)
    assert lines[-1] == "1 passed, 1 failed, 0 skipped", lines


def test_a_sanitizer_report_after_passing_cases_fails():
    out = "[==========] Running 1 test(s).\n[       OK ] a\n[==========] 1 test(s) run.\n"
    err = "[  PASSED  ] 1 test(s).\nERROR: LeakSanitizer\n"
    lines = summary(("FAIL", out, err), ok=False)
    assert lines[-1] == "1 passed, 1 failed, 0 skipped", lines
    assert "ERROR: LeakSanitizer" in lines, lines


def test_a_timeout_fails():
    lines = summary(("TIMEOUT", "", ""), ("OK", "", ""), ok=False)
    assert lines[-1] == "1 passed, 1 failed, 0 skipped", lines


def test_own_counts_are_taken_from_the_last_line():
    out = "1 passed, 0 failed, 0 skipped\n7 passed, 0 failed, 2 skipped\n"
    assert summary(("OK", out, ""))[-1] == "7 passed, 0 failed, 2 skipped"


def test_own_counts_do_not_hide_an_exit_code():
    lines = summary(("FAIL", "7 passed, 0 failed, 0 skipped\n", ""), ok=False)
    assert lines[-1] == "7 passed, 1 failed, 0 skipped", lines


def test_counted_failure_with_exit_code_0_fails():
    lines = summary(("OK", "7 passed, 2 failed, 0 skipped\n", ""), ok=False)
    assert lines[-1] == "7 passed, 2 failed, 0 skipped", lines


def test_program_without_counts_is_one():
    assert summary(("OK", "x\n", ""), ("SKIP", "", ""))[-1] == "1 passed, 0 failed, 1 skipped"


def test_nothing_run_is_a_failure():
    assert summary(ok=False)[-1] == "0 passed, 0 failed, 0 skipped"


def test_cmocka_itself_prints_what_is_counted():
    program = """
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
static void good(void **state) { (void)state; }
static void bad(void **state) { (void)state; assert_true(0); }
static void absent(void **state) { (void)state; skip(); }
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good), cmocka_unit_test(bad), cmocka_unit_test(absent),
        cmocka_unit_test(good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
"""
    with temporary_folder() as folder:
        binary = os.path.join(folder, "cases")
        run(os.environ.get("CC", "cc"), "-o", binary, write(folder, "cases.c", program), "-lcmocka")
        out = run(binary, ok=False)
    assert summary(("FAIL", out, ""), ok=False)[-1] == "2 passed, 1 failed, 1 skipped"


if __name__ == "__main__":
    run_tests(globals())
