# SPDX-License-Identifier: Apache-2.0
"""What both parts of the benchmark use: a Kafka and a folder of their own, processes seen from outside, the Java plugins."""
import os, re, shutil, socket, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build/release"))
WITH_JAVA = os.environ.get("BENCH_JAVA", "1") == "1"
KAFKA = os.path.join(ROOT, "tests/kafka/kafka.sh")
TICK = os.sysconf("SC_CLK_TCK")
work = tempfile.mkdtemp(prefix="millrace-bench-")
env = dict(os.environ, KAFKA_RUN=os.path.join(work, "kafka"))
serial = 0


def kafka(*args, **more):
    done = subprocess.run(["bash", KAFKA, *args], env=dict(env, **more), stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"bench: kafka.sh {' '.join(args)} failed")
    return done.stdout.strip()


def start_kafka(**more):
    return kafka("start", "1", KAFKA_JAVA_OPTS="-Xms512m -Xmx1g", **more).split("bootstrap.servers=")[1].split()[0]


def finish():
    subprocess.run(["bash", KAFKA, "stop"], env=env)
    if os.environ.get("BENCH_KEEP"):
        print(f"bench: files are in {work}", file=sys.stderr)
    else:
        shutil.rmtree(work, ignore_errors=True)


def java_pid(name):
    with open(os.path.join(env["KAFKA_RUN"], f"{name}.pid")) as f:
        return int(f.read().split()[0])


def fresh(prefix):
    global serial
    serial += 1
    return f"{prefix}{serial}"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# --- processes ------------------------------------------------------------------------------------------------------------

def stat_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()
    except OSError:
        return None


def tree(pid):
    """The process and all its descendants."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = stat_of(name)
            if fields:
                parents.setdefault(int(fields[1]), []).append(int(name))
    found, todo = [], [pid]
    while todo:
        p = todo.pop()
        found.append(p)
        todo += parents.get(p, [])
    return found


def cpu_s(pid):
    """CPU of the tree, children already reaped included."""
    total = 0
    for p in tree(pid):
        fields = stat_of(p)
        if fields:
            total += sum(int(x) for x in fields[11:13])
            if p == pid:
                total += sum(int(x) for x in fields[13:15])
    return total / TICK


def pss_mb(pid):
    total = 0
    for p in tree(pid):
        try:
            with open(f"/proc/{p}/smaps_rollup") as f:
                total += int(re.search(r"^Pss: *(\d+)", f.read(), re.M).group(1))
        except (OSError, AttributeError):
            pass
    return total / 1024


def threads_of(pid):
    return sum(int(f[17]) for f in map(stat_of, tree(pid)) if f)


# --- the Java worker's plugins --------------------------------------------------------------------------------------------

def java_classes():
    """Compile the Java plugins of this folder; with the file connectors' jar they make the Java worker's plugin path."""
    folder = os.path.join(work, "java-plugins")
    os.makedirs(os.path.join(folder, "bench"))
    jars = kafka("libs")
    classes = os.path.join(work, "classes")
    sources = os.path.join(HERE, "java")
    subprocess.run(["javac", "-d", classes, "-cp", f"{jars}/*"] + [os.path.join(sources, f) for f in os.listdir(sources)],
                   check=True)
    subprocess.run(["jar", "cf", os.path.join(folder, "bench", "bench.jar"), "-C", classes, "."], check=True)
    os.makedirs(os.path.join(folder, "file"))
    for name in os.listdir(jars):
        if name.startswith("connect-file"):
            shutil.copy(os.path.join(jars, name), os.path.join(folder, "file"))
    return folder
