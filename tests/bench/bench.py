#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The record path, measured: Millrace, a raw librdkafka program and the Java worker do the same job against one broker.

    bench.py BUILD            (from `make bench`; BUILD holds millrace, plugins and the programs of this folder)

All contestants of a row run in turn, RUNS times over (BENCH_RUNS, 3); every figure is the median of its runs. CPU is user and
system time of the mover's processes (the worker and all its hosts; the broker is not counted) per million records, between
the creation of the connector and the moment the broker has the last record (source), or the last record was committed or
written (sink). Memory is the peak of the summed PSS. Counts are the broker's or the file's, never the mover's.
BENCH_RECORDS sets the records a run (1000000; a quarter of 1 KiB ones), BENCH_ROWS chooses rows by a part of their name: "→" those with
files, "matrix" every converter × source and sink × transforms × size, "A/A" the control, whose "raw" is Millrace once more, "untouched" Json beside our own pass-through. All rows
three times over, with Java, take two hours; BENCH_RECORDS=200000 BENCH_RUNS=1 a fifth of one.
"""
import json, os, signal, statistics, subprocess, sys, tempfile, threading, time, urllib.error, urllib.request

sys.dont_write_bytecode = True
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


def await_offset(topic, count, group=None):
    done = subprocess.run([f"{BUILD}/tests/bench/await_offset", bootstrap, topic, str(count), str(LIMIT_S)]
                          + ([group] if group else []), stdout=subprocess.DEVNULL)
    return done.returncode == 0


def await_bytes(path, size):
    limit = time.monotonic() + LIMIT_S
    while time.monotonic() < limit:
        if os.path.exists(path) and os.path.getsize(path) >= size:
            return True
        time.sleep(0.02)
    return False


def mover(worker_class, config, count, finished):
    """Run one connector in a fresh worker until finished() is true: then count records went through."""
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
    return {"cpu": cpu / count * 1e6, "rate": count / took, "mb": peak.mb, "threads": peak.threads} if ok else None


def program(count, *args):
    """Run one of our raw programs to its end: then count records went through."""
    start = time.monotonic()
    process = subprocess.Popen([str(a) for a in args], stdout=subprocess.DEVNULL)
    peak = Peak(process.pid)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    peak.stop()
    if status != 0:
        return None
    return {"cpu": (usage.ru_utime + usage.ru_stime) / count * 1e6, "rate": count / (time.monotonic() - start),
            "mb": usage.ru_maxrss / 1024, "threads": peak.threads}


# --- data -------------------------------------------------------------------------------------------------------------------

ID = "%07d"
WORDS = ',"note":"%s"'
DOCUMENT = '{"id":%s,"name":"a name of some length","amount":12.5,"active":true,"at":1700000000123%s}'
FIELDS = [("id", "int64"), ("name", "string"), ("amount", "double"), ("active", "boolean"), ("at", "int64"), ("note", "string")]
ENVELOPE = '{"schema":{"type":"struct","fields":[%s],"optional":false,"name":"bench.Row"},"payload":%%s}' % ",".join(
    '{"type":"%s","optional":true,"field":"%s"}' % (kind, name) for name, kind in FIELDS)
STRUCT = "Struct{id=%s,name=a name of some length,amount=12.5,active=true,at=1700000000123,note=%s}\n"


MAP = "{id=%s, name=a name of some length, amount=12.5, active=true, at=1700000000123, note=%s}\n"


class Data:
    """Records of one kind and size as lines of a file, and in a topic; made when first asked for."""
    made = {}

    def __new__(cls, kind, size):
        if (kind, size) not in cls.made:
            cls.made[kind, size] = super().__new__(cls)
            cls.made[kind, size].make(kind, size)
        return cls.made[kind, size]

    def make(self, kind, size):
        self.count, self.size = RECORDS // 4 if size > 500 else RECORDS, size
        self.path, self.topic = os.path.join(work, "%s-%d" % (kind, size)), "%s-%d" % (kind, size)
        note = "x" * max(1, size - len(DOCUMENT % (ID % 0, WORDS % "")))
        document = DOCUMENT % (ID, WORDS % note)
        line = {"text": "%-" + str(size) + "d", "json": document, "schema": (ENVELOPE % document)}[kind]
        self.sunk = {"text": size + 1, "json": len(MAP % (ID % 0, note)), "schema": len(STRUCT % (ID % 0, note))}[kind]
        with open(self.path, "w") as f:
            for i in range(self.count):
                f.write(line % (1000000 + i % 9000000) + "\n")
        if program(self.count, f"{BUILD}/tests/bench/raw_produce", bootstrap, self.topic, self.path, *LIBRDKAFKA_PRODUCER) is None:
            sys.exit("bench: could not fill topics")


def file_source(data, extra):
    def run(worker_class):
        topic = fresh("source")
        config = {"topic": topic, "connector.class": FILE_SOURCE, "file": data().path, **extra}
        return mover(worker_class, config, data().count, lambda group: await_offset(topic, data().count))
    return run


def generator(data, extra):
    """As many records, as large, but made by the connector."""
    def run(worker_class):
        topic = fresh("source")
        config = {"topic": topic, "connector.class": CLASSES[worker_class.tag]["gen"], "count": str(data().count), "size": str(data().size), **extra}
        return mover(worker_class, config, data().count, lambda group: await_offset(topic, data().count))
    return run


def file_sink(data, extra):
    def run(worker_class):
        path = os.path.join(work, fresh("sink"))
        config = {"topics": data().topic, "connector.class": FILE_SINK, "file": path, **extra}
        result = mover(worker_class, config, data().count, lambda group: await_bytes(path, data().count * data().sunk))
        if os.path.exists(path):
            os.unlink(path)
        return result
    return run


def discard(data, extra):
    def run(worker_class):
        config = {"topics": data().topic, "connector.class": CLASSES[worker_class.tag]["discard"], **extra}
        return mover(worker_class, config, data().count, lambda group: await_offset(data().topic, data().count, group))
    return run


# Connect's own producer settings (librdkafka's batch size, and idempotence, without which librdkafka does not keep the order
# that Java keeps); the marked row has librdkafka's in flight and linger.
CONNECT_PRODUCER = ["acks=all", "max.in.flight=1", "enable.idempotence=true", "linger.ms=0"]
LIBRDKAFKA_PRODUCER = ["linger.ms=5"]
OVERRIDES = {"producer.override.max.in.flight.requests.per.connection": "1000000", "producer.override.linger.ms": "5"}


def raw_produce(data, settings):
    return lambda: program(data().count, f"{BUILD}/tests/bench/raw_produce", bootstrap, fresh("raw"), data().path, *settings)


def raw_consume(data):
    def run():
        path = os.path.join(work, fresh("rawsink"))
        result = program(data().count, f"{BUILD}/tests/bench/raw_consume", bootstrap, data().topic, path, data().count)
        if os.path.exists(path):
            os.unlink(path)
        return result
    return run


# The default of millrace.commit.interval.ms, for both.
COMMIT_MS = 100


def raw_relay(data):
    return lambda: program(data().count, f"{BUILD}/tests/bench/raw_relay", bootstrap, data().topic, fresh("relayed"), data().count, COMMIT_MS,
                           *CONNECT_PRODUCER)


def relay(data, extra):
    """From topic to topic in transactions: records and offsets together."""
    def run(worker_class):
        config = {"topics": data().topic, "connector.class": "Copy", "to": fresh("relayed"), **extra}
        return mover(worker_class, config, data().count, lambda group: await_offset(data().topic, data().count, group))
    return run


def file_rows():
    text, large, json_data, schema = (lambda: Data("text", 100)), (lambda: Data("text", 1024)), (lambda: Data("json", 260)), (lambda: Data("schema", 260))
    fetch = "Connect's fetch settings"
    yield ("file → topic, String 100 B", "acks=all, in flight 1, idempotence, linger 0 (Java: without idempotence)",
           raw_produce(text, CONNECT_PRODUCER), file_source(text, {}), True)
    yield ("file → topic, String 100 B *", "librdkafka's in flight and linger 5",
           raw_produce(text, LIBRDKAFKA_PRODUCER), file_source(text, OVERRIDES), False)
    yield ("file → topic, Json", "as the first row", raw_produce(text, CONNECT_PRODUCER), file_source(text, JSON), True)
    yield ("file → topic, Json + schema", "as the first row", raw_produce(text, CONNECT_PRODUCER), file_source(text, SCHEMA), True)
    yield ("topic → file, String 100 B", fetch, raw_consume(text), file_sink(text, {}), True)
    yield ("topic → file, String 1 KiB", fetch, raw_consume(large), file_sink(large, {}), True)
    yield ("topic → file, Json 260 B", fetch, raw_consume(json_data), file_sink(json_data, JSON), True)
    yield ("topic → file, Json + schema", fetch, raw_consume(schema), file_sink(schema, SCHEMA), True)


def steps(*classes, **options):
    """Three transforms, as a connector's configuration names them."""
    config = {"transforms": ",".join("abc")}
    for name, kind in zip("abc", classes):
        config["transforms.%s.type" % name] = "org.apache.kafka.connect.transforms." + kind
    config.update(("transforms." + k.replace("__", ".").replace("_", "."), v) for k, v in options.items())
    return config


BYTES = {"value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"}
STRING = {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}
ANY = steps("HoistField$Value", "InsertField$Value", "ExtractField$Value", a_field="line", b_static_field="origin", b_static_value="here", c_field="line")
HOISTED = steps("HoistField$Value", "InsertField$Value", "ReplaceField$Value", a_field="line", b_static_field="origin", b_static_value="here",
                c_renames="line:text")
ROWS_OF_MAPS = steps("InsertField$Value", "ReplaceField$Value", "TimestampConverter$Value", a_static_field="origin", a_static_value="here",
                     b_renames="name:title", c_field="at", c_target_type="string", c_format="yyyy-MM-dd HH:mm:ss.SSS")
CONVERTERS = [("String", "text", {**STRING}, ANY, ANY), ("ByteArray", "text", {**BYTES, "kind": "bytes"}, ANY, ANY),
              ("Json", "json", JSON, HOISTED, ROWS_OF_MAPS), ("Json + schema", "schema", SCHEMA, HOISTED, ROWS_OF_MAPS)]


def matrix():
    for size in (100, 1024):
        text = lambda size=size: Data("text", size)
        for name, kind, config, out_steps, in_steps in CONVERTERS:
            data = lambda kind=kind, size=size: Data(kind, size)
            shown_size = "1 KiB" if size == 1024 else "100 B"
            for count in (0, 3):
                words = "matrix: %s %s %%s, %d transforms" % (name, shown_size, count)
                yield (words % "source", "generator", raw_produce(text, CONNECT_PRODUCER), generator(text, {**config, **(out_steps if count else {})}), True)
                yield (words % "sink", "discarding", raw_consume(data), discard(data, {**config, **(in_steps if count else {})}), True)


def control():
    job = discard(lambda: Data("text", 100), {})
    yield ("A/A control: String 100 B sink", "raw is Millrace once more", lambda: job(Millrace), job, False)


def untouched():
    """Json without schema and without transforms beside what our own converters pass through (a sink: of the same topic): at most 1.5 times that."""
    for size in (100, 260, 1024):
        text, documents = (lambda size=size: Data("text", size)), (lambda size=size: Data("json", size))
        jobs = [("source", generator(text, {**BYTES, "kind": "bytes"}), generator(text, JSON)), ("sink", discard(documents, BYTES), discard(documents, JSON)),
                ("topic → file", file_sink(text, STRING), file_sink(documents, JSON))]
        for work, plain, job in jobs:
            yield ("Json untouched: %s %d B" % (work, size), "raw is our own pass-through", lambda plain=plain: plain(Millrace), job, False)


def relay_rows():
    text, large = (lambda: Data("text", 100)), (lambda: Data("text", 1024))
    words = "transactions of %d ms, as the first row" % COMMIT_MS
    yield ("topic → topic exactly once, String 100 B", words, raw_relay(text), relay(text, {}), False)
    yield ("topic → topic exactly once, String 1 KiB", words, raw_relay(large), relay(large, {}), False)


def rows():
    yield from file_rows()
    yield from relay_rows()
    yield from matrix()
    yield from untouched()
    yield from control()


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
    record_path()
    if not ROWS or ROWS in "idle":
        idle_and_latency()
finally:
    finish()
