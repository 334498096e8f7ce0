#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run connectors on the Java worker and on ours, on one broker, and compare all they leave behind, byte for byte.

  record_diff.py JAVA_URL OUR_URL SERVERS PROGRAM FOLDER [CASE...]

PROGRAM is record_topics; cases are in record_cases.py. Each case runs on both workers at once, in groups, until both have done with
it: their offsets stand at the end, or a task failed. Compared are states with the first line of each trace, offsets, files, and every
topic the connector made: its settings; partition, kind of timestamp, key, value and headers of each record. Stack traces are not,
and a time of this last hour is "now". Prints "case: what", what Java has (expected) and what we have (got), unless
known-record-differences.txt has it; exit status 1 when there is any.
"""
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request

import record_cases

GROUP = 24              # connectors that run at once, on each worker
WAIT_S = 120            # until the Java worker has done with a group
AFTER_S = 12            # until ours has left the same behind, from then on; a case that differs takes it all
WORKERS = ["%s%07x" % (w, int(time.time()) & 0xfffffff) for w in ("java", "mill")]     # new each time, and of one length
FILE = {"source": record_cases.CONNECT + "file.FileStreamSourceConnector", "sink": record_cases.CONNECT + "file.FileStreamSinkConnector"}


def call(url, method, path, body=None):
    request = urllib.request.Request(url + path, method=method, headers={"Content-Type": "application/json"},
                                     data=None if body is None else json.dumps(body).encode())
    for _ in range(50):
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as e:
            text = e.read().decode(errors="replace")
            if e.code != 409:
                return e.code, json.loads(text) if text.startswith("{") else {"message": text}
            time.sleep(0.2)
    return 409, {"message": "the worker does not come to rest"}


def hexed(value):
    if isinstance(value, str):
        value = value.encode()
    return "-" if value is None else value.hex() or "."


class Life:
    """One case on one worker."""

    def __init__(self, case, worker, url, root):
        self.case, self.url = case, url
        self.name = "%s-%s-c" % (worker, case["name"])     # none begins another
        self.dir = os.path.join(root, self.name)
        os.makedirs(self.dir)
        self.source = "lines" in case
        self.path = os.path.join(self.dir, "in" if self.source else "out")
        self.refused, self.seen, self.tells_offsets = None, None, True

    def fill(self, text):
        return text.replace("@{c}", self.name).replace("@{dir}", self.dir)

    def plain(self, text):
        """What it says, without the worker's mark."""
        return text.replace(self.dir, "@{dir}").replace(self.name, "@{c}")

    def lines(self):
        """For record_topics: topics and their records."""
        for name, topic in self.case.get("topics", {}).items():
            yield "topic %s-%s %d" % (self.name, name, topic["partitions"])
            for r in topic["records"]:
                words = [hexed(x) for h in r["headers"] for x in h]
                yield " ".join(["record %s-%s %d %d" % (self.name, name, r["partition"], r["time"]), hexed(r["key"]), hexed(r["value"])] + words)
        for name, partitions in self.case.get("out", {}).items():
            yield "topic %s-%s %d" % (self.name, name, partitions)

    def start(self):
        config = {"tasks.max": "1", "connector.class": FILE["source" if self.source else "sink"], "file": self.path}
        if self.source:
            with open(self.path, "wb") as f:
                f.write(self.case["lines"])
            config["topic"] = self.name + "-out"
        elif "topics.regex" not in self.case["config"]:
            config["topics"] = ",".join(self.name + "-" + t for t in self.case["topics"])
        config.update((k, self.fill(v)) for k, v in self.case["config"].items())
        status, body = call(self.url, "POST", "/connectors", {"name": self.name, "config": config})
        if status != 201:
            self.refused = "%d %s" % (status, self.plain(body.get("message", "")))

    def ends(self):
        """Where each partition ends: what the worker's offsets say once all is done."""
        found = {}
        regex = self.case["config"].get("topics.regex")
        for name, topic in self.case.get("topics", {}).items():
            full = self.name + "-" + name
            for r in topic["records"]:
                if regex is None or re.fullmatch(self.fill(regex), full):
                    found[full, r["partition"]] = found.get((full, r["partition"]), 0) + 1
        return found

    def length(self):
        """The file source's last position: ours counts bytes, Java UTF-16 units of what it could decode."""
        text = self.case["lines"].replace(b"\xed\xa0\x80", b"\xff")
        return len(text.decode(errors="replace").encode("utf-16-le")) // 2 if self.name.startswith("java") else len(self.case["lines"])

    def offset(self, entry):
        if self.source and entry["offset"]["position"] == self.length():
            entry["offset"]["position"] = "the end"
        return self.plain(json.dumps(entry, sort_keys=True))

    def look(self):
        """Whether it has done; and what its state and offsets are."""
        if self.refused:
            return True
        _, status = call(self.url, "GET", "/connectors/%s/status" % self.name)
        _, offsets = call(self.url, "GET", "/connectors/%s/offsets" % self.name)
        self.tells_offsets = "offsets" in offsets
        parts = [status["connector"]] + status["tasks"]
        trace = [(p.get("trace") or "").split("\n")[0] for p in parts]
        stands = offsets.get("offsets", [])     # a worker that does not tell them is compared without
        at = {(o["partition"].get("kafka_topic"), o["partition"].get("kafka_partition")): o["offset"].get("kafka_offset") for o in stands}
        self.seen = {"states": [p["state"] for p in parts], "trace": list(map(self.plain, trace)), "offsets": sorted(map(self.offset, stands))}
        if "FAILED" in self.seen["states"]:
            return True
        return "the end" in "".join(self.seen["offsets"]) if self.source else at == self.ends()

    def delete(self):
        if not self.refused:
            call(self.url, "DELETE", "/connectors/" + self.name)

    def files(self):
        if self.source:
            return {}
        try:
            with open(self.path, "rb") as f:
                text = f.read()
        except OSError:
            return {"out": None}
        lines = text.replace(self.name.encode(), b"@{c}").split(b"\n")
        return {"out": sorted(lines) if self.case.get("unordered") else lines}


# --- what a topic holds ---------------------------------------------------------------------------------------------------------

def shown(word):
    return None if word == "-" else b"" if word == "." else bytes.fromhex(word)


def header(name, value, mark):
    value = value if value is None else value.replace(mark, b"@{c}")
    return name, b"a trace" if name == b"__connect.errors.exception.stacktrace" and value else value


def when(word):
    ms = int(word[1:])
    return word[0], "now" if abs(time.time() * 1000 - ms) < 3600000 else ms


def topics_of(life, tools):
    text = subprocess.run([*tools, "dump", life.name + "-"], stdout=subprocess.PIPE, check=True, text=True).stdout
    mark, given, found = life.name.encode(), {life.name + "-" + t for t in life.case.get("topics", {})}, {}
    for line in text.splitlines():
        words = line.split(" ")
        if words[1] in given:
            continue
        what = life.plain(words[1])
        if words[0] == "topic":
            found[what] = {"settings": words[2:], "records": []}
            continue
        plain = [None if b is None else b.replace(mark, b"@{c}") for b in map(shown, words[4:])]
        headers = [header(plain[i], plain[i + 1], mark) for i in range(2, len(plain), 2)]
        found[what]["records"].append({"partition": words[2], "timestamp": when(words[3]), "key": plain[0], "value": plain[1],
                                       "headers": headers})
    for topic in found.values():
        topic["records"].sort(key=lambda r: int(r["partition"]))    # within one, the broker's order stays
    return found


# --- comparing ------------------------------------------------------------------------------------------------------------------

def members(value):
    """The same for two texts of one map in another order."""
    return sorted(re.split(rb"[{}\[\], ]+", value)) if isinstance(value, bytes) and b"{" in value else value


def differences(want, got, where):
    """(where, expected, got) of each leaf that differs; lists by their places."""
    if isinstance(want, dict) and isinstance(got, dict):
        for key in sorted(set(want) | set(got)):
            yield from differences(want.get(key), got.get(key), "%s %s" % (where, key))
    elif isinstance(want, (list, tuple)) and isinstance(got, (list, tuple)):
        for i in range(max(len(want), len(got))):
            yield from differences(want[i] if i < len(want) else "nothing", got[i] if i < len(got) else "nothing", "%s %d" % (where, i))
    elif want != got:
        yield where + (" (order of members)" if members(want) == members(got) else ""), want, got


def remains(life, tools):
    life.look()
    return {"refused": life.refused, "stands": life.seen, "files": life.files(), "topic": topics_of(life, tools)}


def compare(pair, tools):
    java, ours = (remains(life, tools) for life in pair)
    if java["stands"] and ours["stands"] and not pair[1].tells_offsets:
        java["stands"]["offsets"] = ours["stands"]["offsets"]
    return ["%s:%s\n    expected %.600r\n    got      %.600r" % (pair[0].case["name"], *found) for found in differences(java, ours, "")]


def until(seconds, step, left):
    """Calls step with what is left, until that is nothing or the time is up; returns what is left."""
    end = time.monotonic() + seconds
    while left and time.monotonic() < end:
        left = step(left)
        time.sleep(0.5)
    return left


def run_group(cases, urls, root, tools):
    pairs = [[Life(case, w, url, root) for w, url in zip(WORKERS, urls)] for case in cases]
    lives = [life for pair in pairs for life in pair]
    found = {}

    def compared(left):
        found.update((pair[0].case["name"], compare(pair, tools)) for pair in left)
        return [pair for pair in left if found[pair[0].case["name"]]]

    subprocess.run([*tools, "fill"], input="".join(line + "\n" for life in lives for line in life.lines()), text=True, check=True)
    for life in lives:
        life.start()
    late = until(WAIT_S, lambda left: [pair for pair in left if not pair[0].look()], pairs)
    until(AFTER_S, compared, pairs)
    for life in lives:
        life.delete()
    return ["%s: Java has not done in %d s: %s" % (pair[0].case["name"], WAIT_S, pair[0].seen) for pair in late] + sum(found.values(), [])


def meant():
    """Regular expressions over "case: what expected ... got ..."."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "known-record-differences.txt"), encoding="utf-8") as f:
        return [re.compile(line.rstrip("\n")) for line in f if line.strip() and line[0] != "#"]


def main():
    java, ours, servers, program, root = sys.argv[1:6]
    cases = [c for c in record_cases.CASES if not sys.argv[6:] or c["name"] in sys.argv[6:]]
    known, told, count = meant(), 0, 0
    for i in range(0, len(cases), GROUP):
        for found in run_group(cases[i:i + GROUP], (java, ours), root, (program, servers)):
            whole = " ".join(found.split())
            if any(k.search(whole) for k in known):
                told += 1
                continue
            count += 1
            print(found, flush=True)
    print("%d connectors on each worker: %d new differences, %d known ones" % (len(cases), count, told))
    sys.exit(count > 0)


main()
