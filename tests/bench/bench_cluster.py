#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cluster, measured: deaths, hand-overs, restarts, growth and storms of creates, with Millrace workers and with Java's.

    bench_cluster.py BUILD      (from `make bench`, `make bench-cluster`)

One broker with the group settings that Kafka has by default (group.initial.rebalance.delay.ms=3000), workers with Connect's
(session.timeout.ms=10000, heartbeat.interval.ms=3000), but for scheduled.rebalance.max.delay.ms=2000 and
offset.flush.interval.ms=1000. Both kinds of worker get the same: three workers, and as load one connector of eight tasks, 10
records a second and task, each task into a partition of its own (plugins/ticker.c, java/TickerSource.java).

Every time is what a separate consumer saw (arrivals.c, read committed): when a record came in, which worker and which life
of the task made it. No worker is asked how it is, but for whether it is up (/health) before the next thing is done to it.
Figures are maxima over BENCH_RUNS (10) runs and over all tasks; Java has BENCH_JAVA_RUNS (2; storms of creates: 1, given up
after 100 s). BENCH_JAVA=0: without Java. BENCH_ROWS=word,word: only those of kill, rolling, join, cold, creates, many.
"""
import ctypes, json, os, signal, statistics, subprocess, sys, threading, time

sys.dont_write_bytecode = True
from bench_workers import *

RUNS = int(os.environ.get("BENCH_RUNS", "10"))
JAVA_RUNS = int(os.environ.get("BENCH_JAVA_RUNS", "2"))
ROWS = [r for r in os.environ.get("BENCH_ROWS", "").split(",") if r]
SESSION_S, DELAY_S = 10, 2
TASKS, RATE = 8, 10
PAUSE_MS = 250          # from two and a half intervals of the load on, a silence is one
SETTINGS = (f"session.timeout.ms={SESSION_S * 1000}\nheartbeat.interval.ms=3000\nscheduled.rebalance.max.delay.ms={DELAY_S * 1000}\n"
            "exactly.once.source.support=disabled\n")


class Cluster:
    def __init__(self, worker_class, size=3):
        self.kind, self.group, self.reads = worker_class, fresh("cluster"), None
        self.workers, self.refused_writes = [], 0
        self.launch([self.add() for _ in range(size)])
        self.load = Arrivals(TASKS)
        self.create("load", self.load.topic, TASKS, RATE)
        wait("status", lambda: call(self.workers[0], "GET", "/connectors/load/status")[0] == 200)   # 404 until it has one
        self.reads = subprocess.Popen([sys.executable, os.path.join(HERE, "rest_reads.py"), "/connectors/load/status",
                                       "/connectors/load", "/connectors"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for w in self.workers:
            self.tell_reads("up", w)

    def add(self):
        worker = self.kind(self.group, fresh("w"), SETTINGS)
        self.workers.append(worker)
        return worker

    def tell_reads(self, word, worker):
        if self.reads:
            self.reads.stdin.write(f"{word} {worker.url}\n")
            self.reads.stdin.flush()
            self.reads.stdout.readline()

    def launch(self, workers):
        """All at once; each is read from as soon as it can be."""
        def one(w):
            w.launch()
        threads = [threading.Thread(target=one, args=(w,)) for w in workers]
        for t in threads:
            t.start()
        if self.kind is Millrace:
            for w in workers:
                wait("start", lambda: hasattr(w, "pid"))
                self.tell_reads("up", w)
        for t in threads:
            t.join()
        for w in workers:
            if self.kind is Java:
                self.tell_reads("up", w)
            wait("start of a worker", lambda: call(w, "GET", "/health")[0] == 200)

    def end(self, worker, how):
        """SIGTERM the worker, or SIGKILL it; its hosts see to themselves."""
        self.tell_reads("down", worker)
        at = now_ms()
        os.kill(worker.pid, how)
        return at

    def destroy(self):
        """Workers and hosts, at once."""
        pids = []
        for w in self.workers:
            self.tell_reads("down", w)
            pids += tree(w.pid)
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        for w in self.workers:
            w.wait_ended()

    def create(self, name, topic, tasks, rate, first=0, worker=None):
        config = {"connector.class": self.kind.classes["ticker"], "topic": topic, "tasks.max": str(tasks), "rate": str(rate),
                  "first": str(first)}
        until = time.monotonic() + WAIT_S
        while True:
            status, body = call(worker or self.workers[0], "POST", "/connectors", {"name": name, "config": config})
            if status == 201:
                return
            self.refused_writes += 1
            if status not in (0, 409, 500, 503) or time.monotonic() > until:
                raise Late(f"POST {name}: {status} {body.decode(errors='replace')}")
            if status == 409 and b"already exists" in body:
                return
            time.sleep(0.05)

    def mb(self):
        return sum(pss_mb(w.pid) for w in self.workers)

    def cpu_s(self):
        return sum(cpu_s(w.pid) for w in self.workers)

    def close(self):
        reads, self.reads = self.reads, None
        out, _ = reads.communicate()
        self.destroy()
        return json.loads(out.splitlines()[-1])


# --- figures --------------------------------------------------------------------------------------------------------------

class Figures:
    def __init__(self):
        self.got = {}

    def add(self, row, value):
        self.got.setdefault(row, []).append(value)


def even(arrivals, workers):
    """Every living worker has tasks, none two more than another."""
    counts = [sum(o == w.name for o in arrivals.owners()) for w in workers]
    return sum(counts) == arrivals.partitions and max(counts) - min(counts) <= 1


def settled(arrivals, workers):
    wait("even work", lambda: even(arrivals, workers))
    at = now_ms()
    wait("progress of all", lambda: arrivals.since(at))


def judge_join(figures, arrivals, start, owners, lives):
    """Who moved, who stayed, and how long either was silent since `start`."""
    end = now_ms()
    for p in range(arrivals.partitions):
        moved = arrivals.owners()[p] != owners[p]
        figures.add("join_moved" if moved else "join_unmoved", max(arrivals.silences(p, start, end)))
        if not moved:
            figures.add("join_stopped", int(arrivals.lives()[p] != lives[p]))


def kill_and_return(figures, cluster, arrivals, run):
    """kill -9 of a worker that has tasks; then it joins again."""
    victim = cluster.workers[run % len(cluster.workers)]
    theirs = [p for p, o in enumerate(arrivals.owners()) if o == victim.name]
    at = cluster.end(victim, signal.SIGKILL)
    wait("work elsewhere", lambda: victim.name not in arrivals.owners())
    for p in theirs:
        figures.add("kill", arrivals.first(p, at, victim.name) - at - (SESSION_S + DELAY_S) * 1000)
    victim.wait_ended()
    cluster.launch([victim])
    settled(arrivals, cluster.workers)


def join_and_leave(figures, cluster, arrivals, run):
    """A fourth worker comes, and is told to end again."""
    settled(arrivals, cluster.workers)
    owners, lives, start = arrivals.owners(), arrivals.lives(), now_ms()
    new = cluster.add()
    cluster.launch([new])
    settled(arrivals, cluster.workers)
    judge_join(figures, arrivals, start, owners, lives)
    hand_over(figures, cluster, arrivals, new)
    cluster.workers.remove(new)
    settled(arrivals, cluster.workers)


def hand_over(figures, cluster, arrivals, worker):
    """SIGTERM: how long its tasks were silent."""
    theirs = [p for p, o in enumerate(arrivals.owners()) if o == worker.name]
    at = cluster.end(worker, signal.SIGTERM)
    wait("work elsewhere", lambda: worker.name not in arrivals.owners())
    for p in theirs:
        figures.add("term", max(arrivals.silences(p, at, now_ms())))
    worker.wait_ended()


def roll(figures, cluster, arrivals, run):
    start = now_ms()
    for worker in list(cluster.workers):
        hand_over(figures, cluster, arrivals, worker)
        cluster.launch([worker])
        settled(arrivals, cluster.workers)
    end = now_ms()
    for p in range(arrivals.partitions):
        figures.add("roll", sum(s for s in arrivals.silences(p, start, end) if s > PAUSE_MS))
    figures.add("roll_took", end - start)


def cold(figures, cluster, arrivals, run):
    cluster.destroy()
    at = now_ms()
    cluster.launch(cluster.workers)
    wait("first records", lambda: arrivals.since(at))
    figures.add("cold", max(arrivals.first(p, at) for p in range(arrivals.partitions)) - at)
    settled(arrivals, cluster.workers)


def storm(figures, cluster, row, connectors, tasks, limit_s, run):
    """Creates one after another through one worker; until every task's first record."""
    arrivals = Arrivals(connectors * tasks)
    prefix, at, posted, cpu = fresh("storm"), now_ms(), 0, cluster.cpu_s()
    through = cluster.workers[run % len(cluster.workers)]
    try:
        for i in range(connectors):
            cluster.create(f"{prefix}-{i}", arrivals.topic, tasks, 1, i * tasks, through)
            posted += 1
            if now_ms() - at > limit_s * 1000:
                raise Late(f"{posted} of {connectors} created after {limit_s} s")
        figures.add(row + "_posts", now_ms() - at)
        wait("first records", lambda: arrivals.since(at), limit_s)
        figures.add(row, max(p[0][0] for p in arrivals.read()) - at)
        figures.add(row + "_mb", cluster.mb())
        figures.add(row + "_cpu", cluster.cpu_s() - cpu)
        for i in range(connectors):
            call(through, "DELETE", f"/connectors/{prefix}-{i}")
    except Late as e:
        say(f"{cluster.kind.tag}: {row}: {e}")
        figures.add(row + "_late", f"{sum(map(bool, arrivals.read()))} of {connectors * tasks} tasks in {limit_s} s")
    finally:
        arrivals.close()


def idle(figures, worker_class, runs):
    for _ in range(runs):
        worker = worker_class(fresh("idle"), "w0", SETTINGS)
        start = now_ms()
        worker.launch()
        wait("start", lambda: call(worker, "GET", "/health")[0] == 200)
        figures.add("up", now_ms() - start)
        time.sleep(2)       # let start-up's memory settle before it is read
        with open(f"/proc/{worker.pid}/status") as f:
            figures.add("rss", int(f.read().split("VmRSS:")[1].split()[0]) / 1024)
        figures.add("pss", pss_mb(worker.pid))
        os.kill(worker.pid, signal.SIGTERM)
        worker.wait_ended()


def wanted(row):
    return not ROWS or row in ROWS


def loads(figures, worker_class, runs):
    cluster = Cluster(worker_class)
    arrivals = cluster.load
    settled(arrivals, cluster.workers)
    at = now_ms()
    wait("calm", lambda: now_ms() - at > 5000)
    arrivals.read()
    figures.add("calm", max(max(arrivals.silences(p, at, now_ms())) for p in range(TASKS)))
    for name, act in (("kill", kill_and_return), ("rolling", roll), ("join", join_and_leave), ("cold", cold)):
        for run in range(runs if wanted(name) else 0):
            lost, doubled = arrivals.lost_and_doubled()
            try:
                act(figures, cluster, arrivals, run)
            except Late as e:
                say(f"{worker_class.tag}: {name}: {e}")
                figures.add(name + "_late", str(e))
                cluster.launch([w for w in cluster.workers if (stat_of(w.pid) or "Z")[0] == "Z"])
                settled(arrivals, cluster.workers)
            now_lost, now_doubled = arrivals.lost_and_doubled()
            figures.add("lost", now_lost - lost)
            figures.add(name + "_doubled", now_doubled - doubled)
            say(f"{worker_class.tag}: {name} {run + 1} of {runs}")
    storms(figures, cluster, runs)
    figures.add("reads", cluster.close())
    arrivals.close()


def storms(figures, cluster, runs):
    java = cluster.kind is Java
    for row, connectors, tasks in (("creates", 60, 1), ("many", 200, 2)):
        if not wanted(row) or (java and row == "many"):
            continue
        for run in range(1 if java else runs):
            storm(figures, cluster, row, connectors, tasks, 100, run)
            say(f"{cluster.kind.tag}: {row} {run + 1}")


TABLE = (  # row, what, aim, unit
    ("calm", "nothing happens for 5 s: longest silence of a task (the measuring itself)", "", "ms"),
    ("kill", "kill -9 of a worker → first record elsewhere, beyond session timeout and delay", "≤ 1000", "ms"),
    ("term", "SIGTERM of a worker: longest silence of a task that moves", "≤ 1000", "ms"),
    ("roll", "rolling restart of three workers: silences over 250 ms, added up for a task", "≤ 2000", "ms"),
    ("roll_took", "the same: from the first SIGTERM until work is even on three", "", "ms"),
    ("rolling_doubled", "the same: records doubled, all tasks", "0", ""),
    ("join_stopped", "a fourth worker joins: tasks that stay and were stopped", "0", ""),
    ("join_unmoved", "the same: longest silence of a task that stays", "as calm", "ms"),
    ("join_moved", "the same: longest silence of a task that moves", "≤ 1000", "ms"),
    ("cold", "all workers and hosts killed, all started: first record of the last task", "≤ 3000", "ms"),
    ("creates", "60 connectors created one after another: first record of the last", "≤ 10000", "ms"),
    ("creates_posts", "the same: the POSTs alone", "", "ms"),
    ("many", "200 connectors × 2 tasks created one after another: first record of the last task", "≤ 20000", "ms"),
    ("many_posts", "the same: the POSTs alone", "", "ms"),
    ("many_cpu", "the same: CPU of workers and hosts", "", "s"),
    ("many_mb", "the same: PSS of three workers and all hosts", "", "MB"),
    ("lost", "records lost in a run, all tasks", "0", ""),
    ("up", "exec → /health answers 200, in a new group (whose coordinator waits 3 s)", "", "ms"),
    ("rss", "idle worker: RSS", "", "MB"),
    ("pss", "idle worker: PSS with its nest", "< 15", "MB"),
)


def cell(figures, row):
    values = figures.got.get(row)
    late = figures.got.get(row + "_late") or figures.got.get({"roll": "rolling", "join_moved": "join"}.get(row, row) + "_late")
    if not values:
        return ("–", "–", "–") if not late else (late[0], "–", str(len(late)))
    shown = "%.1f" if row in ("rss", "pss") else "%.0f"
    return shown % max(values), shown % statistics.median(values), f"{len(values)}{' + late ' + str(len(late)) if late else ''}"


def table(ours, java):
    print("\nmaxima over all runs and tasks (median in the next column); n: values, one a run, or one a run and task")
    print("| what | aim | unit | ours | median | n | Java | median | n |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row, what, aim, unit in TABLE:
        print("| " + " | ".join((what, aim, unit) + cell(ours, row) + cell(java, row)) + " |")
    for tag, figures in (("ours", ours), ("Java", java)):
        for reads in figures.got.get("reads", ()):
            print(f"\nREST reads all the while, {tag}: {reads['reads']} answered 200, {reads['refused']} refused (aim 0) "
                  f"{reads['kinds'] or ''}, {reads['starting']} told 503 by a worker not ready yet; "
                  f"median {reads['p50']:.1f} ms, p99 {reads['p99']:.1f} ms (aim ≤ 50), longest {reads['max']:.0f} ms", flush=True)


def told_to_end(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)   # once: what was started has still to be ended
    sys.exit("bench: told to end")


ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)    # PR_SET_CHILD_SUBREAPER: what loses its parent here is ours to end
signal.signal(signal.SIGTERM, told_to_end)
results = {Millrace: Figures(), Java: Figures()}
try:
    begin(KAFKA_EXTRA="group.initial.rebalance.delay.ms=3000")
    for worker_class, runs in ((Millrace, RUNS), (Java, JAVA_RUNS if WITH_JAVA else 0)):
        if runs:
            loads(results[worker_class], worker_class, runs)
            idle(results[worker_class], worker_class, 1)
finally:
    table(results[Millrace], results[Java])
    for pid in tree(os.getpid())[1:]:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    finish()
