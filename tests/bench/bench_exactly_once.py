#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exactly once from sources, measured: what it costs beside at-least-once, with Millrace and with Java, and how soon it is back.

    bench_exactly_once.py BUILD      (from `make bench`)

rate      One task of a generator, 100 B strings, as fast as they are taken, into one partition, for BENCH_SECONDS (10):
          exactly.once.source.support=enabled with transactions of one second, beside disabled with offsets stored each second;
          one worker, in a cluster of its own. Records a second as readers of committed records see them (topic_rate.c).
          CPU is that of the worker and its hosts. Medians of BENCH_RUNS (3), all contestants in turn.
recovery  kill -9 of the host of two tasks, 100 records a second each, in transactions of 500 ms: each has been open for 100 ms
          or more, as what a reader of its own (arrivals.c, read committed) has seen of them tells. Until the first record of each
          task's next life is read there. Maxima over BENCH_RECOVERIES (20) connectors, and what was lost or doubled.

BENCH_JAVA=0: without Java. BENCH_ROWS=rate or recovery: only that. (From topic to topic: bench.py; PostgreSQL: bench_postgres.py.)
"""
import os, signal, statistics, subprocess, sys, time

sys.dont_write_bytecode = True
from bench_workers import *

RUNS = int(os.environ.get("BENCH_RUNS", "3"))
SECONDS = int(os.environ.get("BENCH_SECONDS", "10"))
RECOVERIES = int(os.environ.get("BENCH_RECOVERIES", "20"))
ROWS = os.environ.get("BENCH_ROWS", "")
WARM_S = 3
TASKS, RATE, INTERVAL_MS, OPEN_MS = 2, 100, 500, 100


def in_transactions(ms):
    return {"transaction.boundary": "interval", "transaction.boundary.interval.ms": str(ms)}


def start(worker_class, exact):
    worker = worker_class(fresh("exact"), "w0", f"exactly.once.source.support={'enabled' if exact else 'disabled'}\n")
    worker.launch()
    wait("start of a worker", lambda: call(worker, "GET", "/health")[0] == 200)
    return worker


def stop(worker):
    os.kill(worker.pid, signal.SIGTERM)
    worker.wait_ended()


def create(worker, kind, config):
    name = fresh("source")
    status, body = call(worker, "POST", "/connectors", {"name": name, "config": dict(config, **{"connector.class": worker.classes[kind]})})
    if status != 201:
        raise Late(f"POST {name}: {status} {body.decode(errors='replace')}")
    return name


# --- rate -----------------------------------------------------------------------------------------------------------------

class JavaForLoad(Java):
    heap = "-Xms256m -Xmx2g"    # as in bench.py


def rate(worker_class, exact):
    """Records a second, and CPU-seconds of a million of them."""
    worker, topic = start(worker_class, exact), fresh("rate")
    try:
        create(worker, "generator", {"topic": topic, "count": "1000000000000", "size": "100", "tasks.max": "1",
                                     **(in_transactions(1000) if exact else {})})
        reader = subprocess.Popen([f"{BUILD}/tests/bench/topic_rate", place.bootstrap, topic, str(WARM_S), str(SECONDS)],
                                  stdout=subprocess.PIPE, text=True)
        reader.stdout.readline()
        cpu, begin_s = cpu_s(worker.pid), time.monotonic()
        shown = reader.stdout.readline()
        cpu, took_s = cpu_s(worker.pid) - cpu, time.monotonic() - begin_s
        if reader.wait() != 0:
            raise Late(f"{worker.tag}: no records")
        return float(shown), cpu / took_s / float(shown) * 1e6
    finally:
        stop(worker)


def rates():
    kinds = [Millrace] + ([JavaForLoad] if WITH_JAVA else [])
    got = {(kind, exact): [] for kind in kinds for exact in (True, False)}
    for run in range(RUNS):
        for kind, exact in got:
            got[kind, exact].append(rate(kind, exact))
        say(f"rate {run + 1} of {RUNS}")
    print("\n| source, 100 B, one task, 1 s | exactly once/s | at least once/s | ratio | aim | CPU-s per million | at least once |")
    print("|---|---|---|---|---|---|---|")
    for kind in kinds:
        (exact, exact_cpu), (plain, plain_cpu) = ([statistics.median(v) for v in zip(*got[kind, e])] for e in (True, False))
        print(f"| {kind.tag} | {exact:,.0f} | {plain:,.0f} | {exact / plain:.2f} | {'≥ 0.90' if kind is Millrace else ''} | "
              f"{exact_cpu:.2f} | {plain_cpu:.2f} |", flush=True)


# --- recovery -------------------------------------------------------------------------------------------------------------

def host_of(worker, name):
    for pid in tree(worker.pid):
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            if f.read().replace(b"\0", b" ").strip() == f"millrace host {name}".encode():
                return pid
    raise Late(f"no host of {name}")


def transactions_are_open(arrivals):
    """Each task has made records for a while since its last commit, and will not commit for a while."""
    return all(p and OPEN_MS < now_ms() - p[-1][0] < INTERVAL_MS - OPEN_MS for p in arrivals.read())


def recovery(worker):
    """Milliseconds of each task, and what was lost and doubled."""
    arrivals = Arrivals(TASKS)
    try:
        name = create(worker, "ticker", {"topic": arrivals.topic, "tasks.max": str(TASKS), "rate": str(RATE), **in_transactions(INTERVAL_MS)})
        at = now_ms()
        wait("first records", lambda: arrivals.since(at))
        host = host_of(worker, name)
        wait("open transactions", lambda: transactions_are_open(arrivals))
        before = arrivals.lives()
        at = now_ms()
        os.kill(host, signal.SIGKILL)
        wait("records of the next lives", lambda: all(now != life for now, life in zip(arrivals.lives(), before)))
        firsts = [next(r[0] for r in p if r[3] != life and r[0] > at) for p, life in zip(arrivals.got, before)]
        call(worker, "DELETE", f"/connectors/{name}")
        return [first - at for first in firsts], arrivals.lost_and_doubled()
    finally:
        arrivals.close()


def recoveries():
    worker, took, lost, doubled = start(Millrace, True), [], 0, 0
    try:
        for run in range(RECOVERIES):
            ms, (l, d) = recovery(worker)
            took, lost, doubled = took + ms, lost + l, doubled + d
    finally:
        stop(worker)
    print(f"\nkill -9 of a host with {TASKS} tasks inside open transactions → first record at a read_committed reader: "
          f"{max(took):.0f} ms at most (aim ≤ 2000), median {statistics.median(took):.0f} ms, of {len(took)}; "
          f"{lost} lost, {doubled} doubled", flush=True)


try:
    begin()
    if ROWS in ("", "rate"):
        rates()
    if ROWS in ("", "recovery"):
        recoveries()
except Late as e:
    sys.exit(f"bench: {e}")
finally:
    for pid in tree(os.getpid())[1:]:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    finish()
