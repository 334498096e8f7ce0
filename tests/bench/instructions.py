#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions per record of a task's stages, counted by callgrind on a fixed input, beside those of instructions.txt.

    instructions.py BUILD            (from `make bench`; exit status 1 when one has grown by more than 3 %)
    BENCH_WRITE=1 instructions.py BUILD      writes instructions.txt anew: in the commit that meant the change

Each runs twice, with few and with more batches; the difference is the records' own. Figures are of the compiler that the file names:
another one's are printed, not judged.
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/release")
FILE = os.path.join(HERE, "instructions.txt")
PROGRAM = [os.path.join(BUILD, "tests/bench/record_cost"), os.path.join(BUILD, "plugins")]
FEW, MORE, BATCH = 4, 12, 500
GROWN = 1.03


def collected(name, batches):
    run = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *PROGRAM, name, str(batches)],
                         stderr=subprocess.PIPE, text=True)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode != 0 or not found:
        sys.exit("instructions: %s: %s" % (name, run.stderr[-500:]))
    return int(found.group(1))


def known():
    try:
        with open(FILE, encoding="utf-8") as f:
            words = [line.split() for line in f if line.strip()]
    except OSError:
        return "", {}
    return " ".join(words[0][1:]), {w[0]: int(w[1]) for w in words[1:]}


compiler = subprocess.run(["gcc", "--version"], stdout=subprocess.PIPE, text=True).stdout.split("\n")[0]
by, before = known()
names = subprocess.run(PROGRAM, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
now = {name: (collected(name, MORE) - collected(name, FEW)) // ((MORE - FEW) * BATCH) for name in names}
if os.environ.get("BENCH_WRITE"):
    with open(FILE, "w", encoding="utf-8") as f:
        f.write("compiler %s\n" % compiler + "".join("%-16s %d\n" % item for item in now.items()))
print("\n| stages | instructions a record | recorded | |\n|---|---|---|---|")
grown = [n for n in names if by == compiler and now[n] > before.get(n, now[n]) * GROWN + 5]
for name in names:
    print("| %s | %d | %s | %s |" % (name, now[name], before.get(name, "–"), "GROWN" if name in grown else ""))
if by != compiler:
    print("\nrecorded with %s, this is %s: not judged" % (by or "nothing", compiler))
sys.exit(1 if grown and not os.environ.get("BENCH_WRITE") else 0)
