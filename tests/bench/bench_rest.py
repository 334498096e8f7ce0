#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""REST, measured: how fast it is read while records flow, and how soon a thousand connectors are created.

    bench_rest.py BUILD       (from `make bench`)

reads     GET /connectors/load/status as fast as it is answered. One standalone worker after the other, Millrace's and Java's, with
          one source of 1000 records a second (plugins/ticker.c, java/TickerSource.java). BENCH_CONNECTIONS (16) connections stay open
          and ask again when they have their answer (http_load.c), for BENCH_SECONDS (10) after a warm-up of half of that. Broker,
          worker, host and client share the machine: these are two cores.
creates   BENCH_CREATES (1000) connectors of one task, each a record a second, POSTed by eight clients, which send the next one when
          they have their answer, to one worker of a cluster of its own; until the last 201, and until all tasks are RUNNING. Java is
          stopped after three minutes, with what it has by then.

BENCH_JAVA=0: without Java. BENCH_ROWS=reads or creates: only that.
"""
import json, os, signal, subprocess, sys, threading, time, urllib.request

sys.dont_write_bytecode = True
import bench_workers
from bench_workers import *

CONNECTIONS = os.environ.get("BENCH_CONNECTIONS", "16")
SECONDS = int(os.environ.get("BENCH_SECONDS", "10"))
CREATES, CLIENTS, LIMIT_S = int(os.environ.get("BENCH_CREATES", "1000")), 8, 180
ROWS = os.environ.get("BENCH_ROWS", "")
CONVERTERS = ("offset.flush.interval.ms=1000\nkey.converter=org.apache.kafka.connect.storage.StringConverter\n"
              "value.converter=org.apache.kafka.connect.storage.StringConverter\n")


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return reply.read()
    except OSError:
        return b""


# --- reads ----------------------------------------------------------------------------------------------------------------

class Millrace:
    tag, ticker = "Millrace", "Ticker"

    def __init__(self):
        folder = os.path.join(work, fresh("millrace"))
        os.makedirs(folder)
        self.port = free_port()
        with open(os.path.join(folder, "worker.properties"), "w") as f:
            f.write(f"bootstrap.servers={place.bootstrap}\nlisteners=http://127.0.0.1:{self.port}\nplugin.path={BUILD}/tests/bench\n"
                    f"offset.storage.file.filename={folder}/offsets\nmillrace.run.dir={folder}/run\n" + CONVERTERS)
        self.log = open(os.path.join(folder, "log"), "w")
        self.process = subprocess.Popen([f"{BUILD}/millrace", "standalone", f.name], stdout=self.log, stderr=self.log)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


class Java:
    tag, ticker = "Java", "bench.TickerSource"

    def __init__(self):
        self.name = fresh("java")
        url = kafka("standalone", self.name, KAFKA_JAVA_OPTS="-Xms256m -Xmx2g",
                    CONNECT_EXTRA=f"plugin.path={place.java_plugins}\nplugin.discovery=only_scan\n" + CONVERTERS).splitlines()[-1]
        self.port = int(url.rsplit(":", 1)[1])

    def stop(self):
        kafka("end", self.name)


def measure(worker):
    url, topic = f"http://127.0.0.1:{worker.port}", fresh("load")
    wait("the worker", lambda: get(f"{url}/health"))
    config = {"connector.class": worker.ticker, "topic": topic, "rate": "1000", "first": "0", "tasks.max": "1"}
    urllib.request.urlopen(urllib.request.Request(f"{url}/connectors", data=json.dumps({"name": "load", "config": config}).encode(),
                                                  headers={"Content-Type": "application/json"}), timeout=60).read()
    wait("the connector", lambda: get(f"{url}/connectors/load/status").count(b"RUNNING") == 2)
    for seconds in (SECONDS // 2, SECONDS):
        done = subprocess.run([f"{BUILD}/tests/bench/http_load", str(worker.port), "/connectors/load/status", CONNECTIONS, str(seconds)],
                              stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.split()


def reads():
    print("\n| GET status while records flow | requests/s (aim ≥ 30 000) | median ms | p99 ms (aim ≤ 3) | longest ms | wrong (aim 0) |")
    print("|---|---|---|---|---|---|")
    for worker_class in (Millrace, Java) if WITH_JAVA else (Millrace,):
        worker = worker_class()
        try:
            print(f"| {worker.tag}, {CONNECTIONS} connections | " + " | ".join(measure(worker)) + " |", flush=True)
        finally:
            worker.stop()


# --- creates --------------------------------------------------------------------------------------------------------------

class Storm:
    """What the clients share: the next number, and the answers."""

    def __init__(self, worker):
        self.worker, self.lock, self.next, self.codes = worker, threading.Lock(), 0, []
        self.start, self.took_s = time.monotonic(), 0.0

    def take(self):
        with self.lock:
            self.next += 1
            return self.next - 1 if self.next <= CREATES and time.monotonic() - self.start < LIMIT_S else None

    def client(self):
        for n in iter(self.take, None):
            config = {"connector.class": self.worker.classes["ticker"], "topic": "storm", "rate": "1", "first": "0", "tasks.max": "1"}
            code, _ = call(self.worker, "POST", "/connectors", {"name": f"c{n}", "config": config})
            with self.lock:
                self.codes.append(code)
                self.took_s = time.monotonic() - self.start

    def are_running(self):
        code, body = call(self.worker, "GET", "/connectors?expand=status")
        return code == 200 and sum(t["state"] == "RUNNING" for c in json.loads(body).values() for t in c["status"]["tasks"]) == self.codes.count(201)


def storm(worker_class):
    worker = worker_class(fresh("storm"), "w0", "exactly.once.source.support=disabled\n")
    worker.launch()
    try:
        bench_workers.wait("start of a worker", lambda: call(worker, "GET", "/health")[0] == 200)
        act = Storm(worker)
        clients = [threading.Thread(target=act.client) for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        try:
            bench_workers.wait("RUNNING", act.are_running, LIMIT_S)
            running = f"{time.monotonic() - act.start:.1f}"
        except Late:
            running = "–"
        created = act.codes.count(201)
        print(f"| {worker.tag} | {created} | {act.took_s:.1f} | {running} | {len(act.codes) - created} | {pss_mb(worker.pid):.0f} |", flush=True)
    finally:
        os.kill(worker.pid, signal.SIGTERM if worker_class is bench_workers.Millrace else signal.SIGKILL)   # Java takes minutes for a thousand
        worker.wait_ended()


def creates():
    print(f"\n| {CREATES} connectors by {CLIENTS} clients | created | s to the last 201 (aim < 60) | s until all are RUNNING | refused (aim 0) | MB |")
    print("|---|---|---|---|---|---|")
    for worker_class in (bench_workers.Millrace, bench_workers.Java) if WITH_JAVA else (bench_workers.Millrace,):
        storm(worker_class)


signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench: told to end"))    # what was started has still to be ended
try:
    begin()
    for name, part in (("reads", reads), ("creates", creates)):
        if ROWS in ("", name):
            part()
except Late as late:
    sys.exit(f"bench: {late}")
finally:
    finish()
