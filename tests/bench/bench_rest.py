#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads of REST, measured: GET /connectors/load/status as fast as it is answered, while that connector's records flow.

    bench_rest.py BUILD       (from `make bench`)

One standalone worker after the other, Millrace's and Java's, with one source of 1000 records a second (plugins/ticker.c,
java/TickerSource.java). BENCH_CONNECTIONS (16) connections stay open and ask again when they have their answer (http_load.c), for
BENCH_SECONDS (10) after a warm-up of half of that. Broker, worker, host and client share the machine: these are two cores.
"""
import json, os, signal, subprocess, sys, time, urllib.request

sys.dont_write_bytecode = True
from bench_kit import *

CONNECTIONS = os.environ.get("BENCH_CONNECTIONS", "16")
SECONDS = int(os.environ.get("BENCH_SECONDS", "10"))
CONVERTERS = ("offset.flush.interval.ms=1000\nkey.converter=org.apache.kafka.connect.storage.StringConverter\n"
              "value.converter=org.apache.kafka.connect.storage.StringConverter\n")


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return reply.read()
    except OSError:
        return b""


def wait(what, condition):
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > 60:
            sys.exit(f"bench: {what}: not within 60 s")
        time.sleep(0.01)


class Millrace:
    tag, ticker = "Millrace", "Ticker"

    def __init__(self):
        folder = os.path.join(work, fresh("millrace"))
        os.makedirs(folder)
        self.port = free_port()
        with open(os.path.join(folder, "worker.properties"), "w") as f:
            f.write(f"bootstrap.servers={bootstrap}\nlisteners=http://127.0.0.1:{self.port}\nplugin.path={BUILD}/tests/bench\n"
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
                    CONNECT_EXTRA=f"plugin.path={java_plugins}\nplugin.discovery=only_scan\n" + CONVERTERS).splitlines()[-1]
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


signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench: told to end"))    # what was started has still to be ended
try:
    bootstrap = start_kafka()
    java_plugins = java_classes() if WITH_JAVA else None
    print("\n| GET status while records flow | requests/s (aim ≥ 30 000) | median ms | p99 ms (aim ≤ 3) | longest ms | wrong (aim 0) |")
    print("|---|---|---|---|---|---|")
    for worker_class in (Millrace, Java) if WITH_JAVA else (Millrace,):
        worker = worker_class()
        try:
            print(f"| {worker.tag}, {CONNECTIONS} connections | " + " | ".join(measure(worker)) + " |", flush=True)
        finally:
            worker.stop()
finally:
    finish()
