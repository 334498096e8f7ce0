#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Kafka Connect has, and what became of it here: coverage.tsv, a row each: kind, name, status, note.

  coverage.py                 check: every row has a status, and what its note says of it is there
  coverage.py merge LIBS      read the jars in LIBS by Coverage.java, add what is new (without a status), tell what is gone

Status and note: `works` the name of a test; `no effect` why it may be ignored; `refused` what the user is told, or instead;
`later` what it waits for.
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "coverage.tsv")
STATUSES = ("works", "no effect", "refused", "later")


def read():
    with open(TABLE, encoding="utf-8") as f:
        return [line.rstrip("\n").split("\t") for line in f if line.strip() and not line.startswith("#")]


def tests():
    """The names of all tests, as they stand in the sources."""
    names = set()
    for folder, _, files in os.walk(os.path.dirname(HERE)):
        for name in files:
            if name.endswith(".c"):
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as f:
                    names.update(re.findall(r"^static void (\w+)\(void \*\*", f.read(), re.M))
    return names


def check():
    known, bad = tests(), 0
    for row in read():
        kind, name, status, note = (row + [""] * 4)[:4]
        wrong = ("it has no status" if status not in STATUSES else "its note says nothing" if not note else
                 "there is no test of that name" if status == "works" and note not in known else None)
        if wrong:
            bad += 1
            print("coverage.tsv: %s %s: %s (%s %s)" % (kind, name, wrong, status, note))
    return bad


def merge(libs):
    have = {(r[0], r[1]): r for r in read()}
    out = subprocess.run(["java", "-cp", os.path.join(libs, "*"), os.path.join(HERE, "Coverage.java")], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    rows = [tuple(line.split("\t")) for line in out.splitlines() if line.count("\t") == 1]
    for gone in sorted(set(have) - set(rows)):
        print("no longer there: %s %s" % gone)
    for new in sorted(set(rows) - set(have)):
        print("new: %s %s" % new)
    with open(TABLE, "w", encoding="utf-8") as f:
        f.write("# Made by coverage.py: kind, name, status, note.\n")
        for row in rows:
            f.write("\t".join(have.get(row, list(row) + ["", ""])) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(1 if (merge(sys.argv[2]) if len(sys.argv) == 3 and sys.argv[1] == "merge" else check()) else 0)
