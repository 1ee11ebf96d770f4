#!/usr/bin/env python3
"""Check the model of the queue with spin: the design as it is must hold, and each broken variant
must be refuted. Prints states, depth and whether the search was exhaustive.

The clock of the model has TMAX ticks. In ./dev test it is as long as the time allows;
PAWL_TEST_FULL=1 takes the whole of it."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FULL = os.environ.get("PAWL_TEST_FULL") == "1"
TMAX = 9 if FULL else 7

# name, definitions, must hold
VARIANTS = [
    ("the design: safety", [], True),
    ("the design: who stays is served", ["LIVE"], True),
    ("lease from the message's arrival", ["ARRIVAL"], False),
    ("leaving and giving back apart", ["TWO_STEP_CANCEL"], False),
    ("joining again under the old hold id", ["SAME_ID"], False),
    ("no re-check: who stays is served", ["LIVE", "NO_RECHECK"], False),
]


def run(command, folder):
    return subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True).stdout


def number(regex, text):
    match = re.search(regex, text, re.M)
    return int(float(match[1])) if match else 0


def check(name, defines, holds):
    """True if the variant does what it must."""
    began = time.monotonic()
    flags = ["-D" + define for define in defines] + [f"-DTMAX={TMAX}"]
    live = "LIVE" in defines
    with tempfile.TemporaryDirectory(prefix="pawl-model-") as folder:
        shutil.copy(os.path.join(HERE, "handoff.pml"), folder)
        run(["spin", *flags, "-a", "handoff.pml"], folder)
        run([os.environ.get("CC", "cc"), "-O2", "-DMEMLIM=1500", "-DCOLLAPSE",
             *([] if live else ["-DSAFETY", "-DNOCLAIM"]), "-o", "pan", "pan.c"], folder)
        out = run(["./pan", "-m100000", *(["-a", "-f"] if live else [])], folder)
    errors = number(r"errors: (\d+)", out)
    complete = ("Search not completed" not in out and "max search depth too small" not in out and
                "out of memory" not in out)
    good = "errors:" in out and (errors == 0 and complete if holds else errors > 0)
    how = "exhaustive" if complete else "not exhaustive"
    if errors:
        how = "ended by the error"
    states = number(r"^ *([0-9.e+]+) states, stored", out)
    depth = number(r"depth reached (\d+)", out)
    print(f"{name} ({' '.join(flags)}): {'refuted' if errors else 'holds'}"
          f"{'' if good else ', WRONG'}; {states} states, depth {depth}, {how}, "
          f"{time.monotonic() - began:.1f} s", flush=True)
    if not good:
        print(out)
    return good


def main():
    if shutil.which("spin") is None:
        print("spin is not installed: ./dev install")
        sys.exit(77)
    print(f"{TMAX} ticks")
    good = [check(*variant) for variant in VARIANTS]
    print(f"{sum(good)} passed, {len(good) - sum(good)} failed, 0 skipped")
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
