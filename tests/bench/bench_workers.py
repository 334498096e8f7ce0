# SPDX-License-Identifier: Apache-2.0
"""Workers of a cluster, Millrace's and Java's, on one broker, and a reader that says when each record of theirs came in."""
import json, os, subprocess, sys, time, urllib.error, urllib.request

from bench_kit import *

WAIT_S = 60


def say(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def now_ms():
    return time.monotonic() * 1000


class Late(Exception):
    pass


def wait(what, condition, limit_s=WAIT_S):
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > limit_s:
            raise Late(f"{what}: not within {limit_s} s")
        time.sleep(0.01)


class Place:
    """The broker, and the Java worker's plugins; known after begin()."""
    bootstrap = java_plugins = None


place = Place()


def begin(**more):
    place.bootstrap = start_kafka(**more)
    place.java_plugins = java_classes() if WITH_JAVA else None


# --- what came in ---------------------------------------------------------------------------------------------------------

class Arrivals:
    """Per partition what a consumer of its own received, in order: (ms, number, worker, life)."""

    def __init__(self, partitions):
        self.topic, self.partitions = fresh("arrivals"), partitions
        self.path = os.path.join(work, self.topic)
        self.process = subprocess.Popen([f"{BUILD}/tests/bench/arrivals", place.bootstrap, self.topic, str(partitions)],
                                        stdout=open(self.path, "w"))
        self.file, self.rest = open(self.path), ""
        self.got = [[] for _ in range(partitions)]
        wait("reader", lambda: os.path.getsize(self.path) > 0)
        self.file.readline()

    def read(self):
        lines = (self.rest + self.file.read()).split("\n")
        self.rest = lines.pop()
        for line in lines:
            ms, partition, number, worker, life = line.split()
            self.got[int(partition)].append((float(ms), int(number), worker, life))
        return self.got

    def owners(self):
        return [p[-1][2] if p else None for p in self.read()]

    def lives(self):
        return [p[-1][3] if p else None for p in self.read()]

    def since(self, ms):
        """Whether every partition has something newer."""
        return all(p and p[-1][0] > ms for p in self.read())

    def first(self, partition, ms, but=None):
        """When the first record after ms came in that this worker did not make."""
        for at in self.got[partition]:
            if at[0] > ms and at[2] != but:
                return at[0]
        return None

    def silences(self, partition, start, end):
        """All times between two records that reach into [start, end]."""
        times = [at[0] for at in self.got[partition]]
        return [b - a for a, b in zip(times, times[1:]) if b > start and a < end]

    def lost_and_doubled(self):
        lost = doubled = 0
        for p in self.read():
            numbers = [at[1] for at in p]
            lost += len(set(range(max(numbers) + 1)) - set(numbers)) if numbers else 0
            doubled += len(numbers) - len(set(numbers))
        return lost, doubled

    def close(self):
        self.process.kill()
        self.process.wait()
        self.file.close()


# --- workers --------------------------------------------------------------------------------------------------------------

def settings(group, more):
    return (f"group.id={group}\nconfig.storage.topic={group}-configs\noffset.storage.topic={group}-offsets\n"
            f"status.storage.topic={group}-status\nconfig.storage.replication.factor=1\noffset.storage.replication.factor=1\n"
            "status.storage.replication.factor=1\noffset.flush.interval.ms=1000\n"
            "key.converter=org.apache.kafka.connect.storage.StringConverter\n"
            "value.converter=org.apache.kafka.connect.storage.StringConverter\n" + more)


class Millrace:
    """more: worker properties beside those that all have."""
    tag, classes = "millrace", {"ticker": "Ticker", "generator": "Generator"}

    def __init__(self, group, name, more):
        self.name, self.folder = name, os.path.join(work, f"{group}-{name}")
        os.makedirs(self.folder)
        self.url = f"http://127.0.0.1:{free_port()}"
        self.config = os.path.join(self.folder, "worker.properties")
        with open(self.config, "w") as f:
            f.write(settings(group, more) + f"bootstrap.servers={place.bootstrap}\nlisteners={self.url}\n"
                    f"plugin.path={BUILD}/tests/bench\nmillrace.run.dir={self.folder}/run\n")
        self.log = open(os.path.join(self.folder, "log"), "a")

    def launch(self):
        self.process = subprocess.Popen([f"{BUILD}/millrace", "worker", self.config], stdout=self.log, stderr=self.log,
                                        env=dict(os.environ, BENCH_WORKER=self.name))
        self.pid = self.process.pid

    def wait_ended(self):
        self.process.wait(60)


class Java:
    tag, classes = "java", {"ticker": "bench.TickerSource", "generator": "bench.GeneratorSource"}
    heap = "-Xms128m -Xmx1g"

    def __init__(self, group, name, more):
        self.group, self.name, self.more, self.serial = group, name, more, 0

    def launch(self):
        """By kafka.sh, which returns when REST answers; a free port each time."""
        self.serial += 1
        self.unit = f"{self.group}-{self.name}-{self.serial}"
        self.url = kafka("connect", self.unit, BENCH_WORKER=self.name, KAFKA_JAVA_OPTS=self.heap,
                         CONNECT_EXTRA=settings(self.group, self.more) + f"plugin.path={place.java_plugins}\nplugin.discovery=only_scan\n"
                         ).splitlines()[-1]
        self.pid = java_pid(self.unit)

    def wait_ended(self):
        wait("end of a worker", lambda: (stat_of(self.pid) or "Z")[0] == "Z", 60)


def call(worker, method, path, body=None):
    """Status and body; 0 when nobody answers."""
    request = urllib.request.Request(worker.url + path, method=method, headers={"Content-Type": "application/json"},
                                     data=json.dumps(body).encode() if body is not None else None)
    try:
        with urllib.request.urlopen(request, timeout=95) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()
    except OSError:
        return 0, b""


