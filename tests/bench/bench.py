#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The record path, measured: Millrace, a raw librdkafka program and the Java worker do the same job against one broker.

    bench.py BUILD            (from `make bench`; BUILD holds millrace, plugins and the programs of this folder)

All contestants of a row run in turn, RUNS times over (BENCH_RUNS, 3); every figure is the median of its runs. CPU is user and
system time of the mover's processes (the worker and all its hosts; the broker is not counted) per million records, between
the creation of the connector and the moment the broker has the last record (source), or the last record was committed or
written (sink). Memory is the peak of the summed PSS. Counts are the broker's or the file's, never the mover's.
BENCH_RECORDS sets the records a run (1000000), BENCH_ROWS chooses rows by a part of their name.
"""
import json, os, signal, statistics, subprocess, sys, tempfile, threading, time, urllib.error, urllib.request

from bench_kit import *

RUNS = int(os.environ.get("BENCH_RUNS", "3"))
RECORDS = int(os.environ.get("BENCH_RECORDS", "1000000"))
ROWS = os.environ.get("BENCH_ROWS", "")
LIMIT_S = 240


class Peak(threading.Thread):
    """Samples the memory of a process tree until told to stop."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.mb, self.threads, self.over = pid, 0.0, 0, threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(0.25):
            self.mb = max(self.mb, pss_mb(self.pid))
            self.threads = max(self.threads, threads_of(self.pid))

    def stop(self):
        self.over.set()
        self.join()


# --- workers --------------------------------------------------------------------------------------------------------------

def call(method, url, body=None):
    request = urllib.request.Request(url, method=method, data=json.dumps(body).encode() if body is not None else None,
                                     headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=90) as reply:
            return reply.read()
    except urllib.error.HTTPError as e:
        sys.exit(f"bench: {method} {url}: {e.code} {e.read().decode(errors='replace')}")


def answers(url):
    try:
        urllib.request.urlopen(url, timeout=1).read()
        return True
    except OSError:
        return False


class Millrace:
    tag = "millrace"

    def __init__(self):
        port, folder = free_port(), tempfile.mkdtemp(dir=work)
        self.url = f"http://127.0.0.1:{port}"
        config = os.path.join(folder, "worker.properties")
        with open(config, "w") as f:
            f.write(f"bootstrap.servers={bootstrap}\nlisteners={self.url}\nplugin.path={BUILD}/tests/bench\n"
                    f"offset.storage.file.filename={folder}/offsets\noffset.flush.interval.ms=1000\n"
                    f"millrace.run.dir={folder}/run\n"
                    "key.converter=org.apache.kafka.connect.storage.StringConverter\n"
                    "value.converter=org.apache.kafka.connect.storage.StringConverter\n")
        self.log = open(os.path.join(folder, "log"), "w")
        self.started = time.monotonic()
        self.process = subprocess.Popen([f"{BUILD}/millrace", "standalone", config], stdout=self.log, stderr=self.log)
        while not answers(self.url):
            if self.process.poll() is not None or time.monotonic() - self.started > 20:
                sys.exit(f"bench: the worker did not start: see {self.log.name}")
            time.sleep(0.005)
        self.up_s = time.monotonic() - self.started
        self.pid = self.process.pid

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


class Java:
    tag = "java"

    def __init__(self):
        self.name = fresh("java")
        # A heap as an operator gives it, and the JVM's own choice of collector and compilers.
        self.url = kafka("standalone", self.name, KAFKA_JAVA_OPTS="-Xms256m -Xmx2g", CONNECT_EXTRA=(
            f"plugin.path={java_plugins}\nplugin.discovery=only_scan\noffset.flush.interval.ms=1000\n"
            "key.converter=org.apache.kafka.connect.storage.StringConverter\n"
            "value.converter=org.apache.kafka.connect.storage.StringConverter\n")).splitlines()[-1]
        self.pid = java_pid(self.name)

    def stop(self):
        kafka("end", self.name)


# --- the jobs ---------------------------------------------------------------------------------------------------------------

JSON = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}
SCHEMA = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "true"}
CLASSES = {
    "millrace": {"gen": "Generator", "discard": "Discard"},
    "java": {"gen": "bench.GeneratorSource", "discard": "bench.DiscardSink"},
}
FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"


def await_offset(topic, group=None):
    done = subprocess.run([f"{BUILD}/tests/bench/await_offset", bootstrap, topic, str(RECORDS), str(LIMIT_S)]
                          + ([group] if group else []), stdout=subprocess.DEVNULL)
    return done.returncode == 0


def await_bytes(path, size):
    limit = time.monotonic() + LIMIT_S
    while time.monotonic() < limit:
        if os.path.exists(path) and os.path.getsize(path) >= size:
            return True
        time.sleep(0.02)
    return False


def mover(worker_class, config, finished):
    """Run one connector in a fresh worker until finished() is true."""
    worker = worker_class()
    name = fresh("bench")
    peak, cpu, start = Peak(worker.pid), cpu_s(worker.pid), time.monotonic()
    try:
        call("POST", f"{worker.url}/connectors", {"name": name, "config": dict(config, **{"tasks.max": "1"})})
        ok = finished(f"connect-{name}")
        took, cpu = time.monotonic() - start, cpu_s(worker.pid) - cpu
    finally:
        peak.stop()
        worker.stop()
    return {"cpu": cpu / RECORDS * 1e6, "rate": RECORDS / took, "mb": peak.mb, "threads": peak.threads} if ok else None


def program(*args):
    """Run one of our raw programs to its end."""
    start = time.monotonic()
    process = subprocess.Popen([str(a) for a in args], stdout=subprocess.DEVNULL)
    peak = Peak(process.pid)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    peak.stop()
    if status != 0:
        return None
    return {"cpu": (usage.ru_utime + usage.ru_stime) / RECORDS * 1e6, "rate": RECORDS / (time.monotonic() - start),
            "mb": usage.ru_maxrss / 1024, "threads": peak.threads}


def source(kind, extra):
    def run(worker_class):
        topic = fresh("source")
        config = {"topic": topic, **extra}
        if kind == "file":
            config.update({"connector.class": FILE_SOURCE, "file": lines})
        else:
            config.update({"connector.class": CLASSES[worker_class.tag]["gen"], "count": str(RECORDS), "size": "100"})
        return mover(worker_class, config, lambda group: await_offset(topic))
    return run


def sink(kind, topic, extra, size):
    def run(worker_class):
        path = os.path.join(work, fresh("sink"))
        config = {"topics": topic, **extra}
        if kind == "file":
            config.update({"connector.class": FILE_SINK, "file": path})
            result = mover(worker_class, config, lambda group: await_bytes(path, size))
            if os.path.exists(path):
                os.unlink(path)
            return result
        config["connector.class"] = CLASSES[worker_class.tag]["discard"]
        return mover(worker_class, config, lambda group: await_offset(topic, group))
    return run


# Connect's own producer settings (librdkafka's batch size, and idempotence, without which librdkafka does not keep the order
# that Java keeps); the marked row has librdkafka's in flight and linger.
CONNECT_PRODUCER = ["acks=all", "max.in.flight=1", "enable.idempotence=true", "linger.ms=0"]
LIBRDKAFKA_PRODUCER = ["linger.ms=5"]
OVERRIDES = {"producer.override.max.in.flight.requests.per.connection": "1000000", "producer.override.linger.ms": "5"}


def raw_produce(settings):
    return lambda: program(f"{BUILD}/tests/bench/raw_produce", bootstrap, fresh("raw"), lines, *settings)


def raw_consume(topic):
    def run():
        path = os.path.join(work, fresh("rawsink"))
        result = program(f"{BUILD}/tests/bench/raw_consume", bootstrap, topic, path, RECORDS)
        if os.path.exists(path):
            os.unlink(path)
        return result
    return run


def rows():
    yield ("file → topic, String 100 B", "acks=all, in flight 1, idempotence, linger 0 (Java: without idempotence)",
           raw_produce(CONNECT_PRODUCER), source("file", {}), True)
    yield ("file → topic, String 100 B *", "librdkafka's in flight and linger 5",
           raw_produce(LIBRDKAFKA_PRODUCER), source("file", OVERRIDES), False)
    yield ("file → topic, Json", "as the first row", raw_produce(CONNECT_PRODUCER), source("file", JSON), True)
    yield ("generator → topic, String 100 B", "as the first row", raw_produce(CONNECT_PRODUCER), source("gen", {}), True)
    yield ("topic → file, String 100 B", "Connect's fetch settings", raw_consume("strings"),
           sink("file", "strings", {}, RECORDS * 101), True)
    yield ("topic → file, Json 100 B", "Connect's fetch settings", raw_consume("jsons"),
           sink("file", "jsons", JSON, RECORDS * len(JSON_TEXT)), True)
    yield ("topic → discard, String 100 B", "Connect's fetch settings", raw_consume("strings"),
           sink("discard", "strings", {}, 0), True)


JSON_LINE = '{"id":%07d,"name":"a name of some length","amount":12.5,"active":true,"note":"sixteen letters."}'
JSON_TEXT = "{amount=12.5, note=sixteen letters., name=a name of some length, active=true, id=1000000}\n"


def prepare():
    global lines
    lines = os.path.join(work, "lines")
    json_lines = os.path.join(work, "json-lines")
    with open(lines, "w") as f:
        for i in range(RECORDS):
            f.write("%-100d\n" % i)
    with open(json_lines, "w") as f:
        for i in range(RECORDS):
            f.write(JSON_LINE % (1000000 + i % 9000000) + "\n")
    for topic, path in (("strings", lines), ("jsons", json_lines)):
        if program(f"{BUILD}/tests/bench/raw_produce", bootstrap, topic, path, *LIBRDKAFKA_PRODUCER) is None:
            sys.exit("bench: could not fill topics")


def median(results, key):
    values = [r[key] for r in results if r]
    return statistics.median(values) if values else None


def shown(value, fmt):
    return fmt % value if value is not None else "–"


def ratio(a, b):
    return "%.2f" % (a / b) if a and b else "–"


def record_path():
    print(f"\nrecords a run: {RECORDS}; runs: {RUNS}; medians; CPU in seconds per million records\n")
    print("| work | settings | raw CPU | ours CPU | java CPU | ours ÷ raw | java ÷ ours | ours rate/s | java rate/s | raw rate/s |"
          " ours peak MB | java peak MB | ours threads | java threads |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for name, settings, raw, job, with_java in rows():
        if ROWS not in name:
            continue
        got = {"raw": [], "ours": [], "java": []}
        for _ in range(RUNS):
            got["raw"].append(raw())
            got["ours"].append(job(Millrace))
            if with_java and WITH_JAVA:
                got["java"].append(job(Java))
        c = {k: median(v, "cpu") for k, v in got.items()}
        cells = [name, settings] + [shown(c[k], "%.2f") for k in ("raw", "ours", "java")]
        cells += [ratio(c["ours"], c["raw"]), ratio(c["java"], c["ours"])]
        cells += [shown(median(got[k], "rate"), "%.0f") for k in ("ours", "java", "raw")]
        cells += [shown(median(got[k], "mb"), "%.0f") for k in ("ours", "java")]
        cells += [shown(median(got[k], "threads"), "%.0f") for k in ("ours", "java")]
        print("| " + " | ".join(cells) + " |", flush=True)


def idle_and_latency():
    ups = []
    for _ in range(max(RUNS, 5)):
        worker = Millrace()
        ups.append(worker.up_s)
        worker.stop()
    worker = Millrace()
    time.sleep(2)       # let start-up's memory settle before it is read
    idle = pss_mb(worker.pid)
    path = os.path.join(work, "idle")
    open(path, "w").close()
    for i in range(10):
        call("POST", f"{worker.url}/connectors", {"name": f"idle{i}", "config": {
            "connector.class": FILE_SOURCE, "file": path, "topic": "idle", "tasks.max": "1"}})
    time.sleep(3)
    ten = pss_mb(worker.pid)
    worker.stop()
    print(f"\nexec → first 200: {statistics.median(ups) * 1000:.0f} ms (median of {len(ups)})")
    print(f"worker idle: {idle:.1f} MB PSS; each of ten idle file sources: {(ten - idle) / 10:.2f} MB PSS")
    for worker_class in (Millrace, Java) if WITH_JAVA else (Millrace,):
        worker, topic, path = worker_class(), fresh("latency"), os.path.join(work, fresh("latency"))
        with open(path, "w") as f:
            f.write("0\n")
        call("POST", f"{worker.url}/connectors", {"name": topic, "config": {
            "connector.class": FILE_SOURCE, "file": path, "topic": topic, "tasks.max": "1"}})
        subprocess.run([f"{BUILD}/tests/bench/await_offset", bootstrap, topic, "1", "30"], stdout=subprocess.DEVNULL)
        done = subprocess.run([f"{BUILD}/tests/bench/append_latency", bootstrap, topic, path, "300", "37"],
                              stdout=subprocess.PIPE, text=True)
        worker.stop()
        print(f"line appended → read from the topic, {worker_class.tag}: median, p99, max ms, lines: {done.stdout.strip()}",
              flush=True)


try:
    bootstrap = start_kafka()
    java_plugins = java_classes() if WITH_JAVA else None
    prepare()
    record_path()
    if not ROWS or ROWS in "idle":
        idle_and_latency()
finally:
    finish()
