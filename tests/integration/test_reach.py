#!/usr/bin/env python3
"""Every result of PAWL_RESULT_MAP is reached by a test of this folder: reached.txt says by which,
and this looks whether that test exists, is run, and speaks of the result."""
import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = os.path.join(HERE, "..", "..", "include", "pawl.h")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def results():
    return re.findall(r"^    X\((\w+), -?\d+, \w+,", read(HEADER), re.M)


def table():
    rows = [line.split() for line in read(os.path.join(HERE, "reached.txt")).splitlines()
            if line.strip() and not line.startswith("#")]
    return {result: (file, test) for result, file, test in rows}


def body(text, test):
    match = re.search(r"^static void %s\(void \*\*state\)\n\{\n(.*?)^\}" % test, text,
                      re.M | re.S)
    return match.group(1) if match else None


class Reach(unittest.TestCase):
    def test_every_result_has_a_row_and_no_other(self):
        self.assertEqual(sorted(table()), sorted(results()))

    def test_every_row_names_a_test_that_runs_and_expects_the_result(self):
        registered = read(os.path.join(HERE, "meson.build"))
        for result, (file, test) in table().items():
            with self.subTest(result=result):
                text = read(os.path.join(HERE, f"test_{file}.c"))
                self.assertIn(f"'{file}'", registered)
                self.assertIsNotNone(body(text, test), f"{test} is not in test_{file}.c")
                self.assertRegex(text, r"(SERVED|cmocka_unit_test)\(%s\)" % test)
                word = "PAWL_" + result if result != "OK" else "EXPECT_RESULT"
                found = re.search(r"\b%s\b" % word, body(text, test)) or (
                    # said by a helper that the test calls
                    re.search(r"\b%s\b" % word, text) and "misuse_everything" in body(text, test))
                self.assertTrue(found, f"{test} does not speak of {word}")


if __name__ == "__main__":
    program = unittest.main(exit=False)
    n_failed = len(program.result.failures) + len(program.result.errors)
    print(f"{program.result.testsRun - n_failed} passed, {n_failed} failed, 0 skipped")
    sys.exit(n_failed != 0)
