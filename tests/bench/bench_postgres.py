#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PostgresSink, measured: rows a second into a table, beside psql's plain COPY of the same rows.

    bench_postgres.py BUILD      (from `make bench`)

The sink reads JSON with schemas from one partition, in batches of 5000, one task; a batch is one transaction, with its offsets.
COPY has the rows as text in a file. Rows are counted by PostgreSQL. BENCH_RECORDS (1000000) rows, BENCH_RUNS (3) runs, medians.
"""
import json, os, signal, statistics, subprocess, sys, time, urllib.request

sys.dont_write_bytecode = True
from bench_kit import *

RUNS = int(os.environ.get("BENCH_RUNS", "3"))
RECORDS = int(os.environ.get("BENCH_RECORDS", "1000000"))
LIMIT_S = 240
POSTGRES = os.path.join(ROOT, "tests/postgres/postgres.sh")
SCHEMA = ('{"schema":{"type":"struct","fields":[{"field":"id","type":"int64"},{"field":"name","type":"string"},'
          '{"field":"price","type":"double"}]},"payload":{"id":%d,"name":"customer number %d","price":%d.5}}\n')


def postgres(*args):
    return subprocess.run(["bash", POSTGRES, *args], env=dict(os.environ, POSTGRES_RUN=os.path.join(work, "postgres")), check=True,
                          stdout=subprocess.PIPE, text=True).stdout.strip()


def rows(table):
    if postgres("sql", f"SELECT to_regclass('{table}') IS NOT NULL") != "t":
        return 0
    return int(postgres("sql", f"SELECT count(*) FROM {table}"))


def plain_copy(path):
    table = fresh("plain")
    postgres("sql", f"CREATE TABLE {table} (id bigint NOT NULL, name text NOT NULL, price double precision NOT NULL)")
    begin = time.monotonic()
    postgres("sql", f"\\copy {table} FROM '{path}'")
    return RECORDS / (time.monotonic() - begin)


def sink(url, server, topic):
    table = fresh("sunk")
    config = {"connector.class": "PostgresSink", "topics": topic, "table.name.format": table, "auto.create": "true",
              "connection.url": server, "value.converter": "JsonConverter", "consumer.override.max.poll.records": "5000"}
    begin = time.monotonic()
    urllib.request.urlopen(urllib.request.Request(f"{url}/connectors/{table}/config", method="PUT", data=json.dumps(config).encode(),
                                                  headers={"Content-Type": "application/json"})).read()
    while rows(table) < RECORDS:
        if time.monotonic() - begin > LIMIT_S:
            sys.exit(f"bench: {table} has {rows(table)} rows after {LIMIT_S} s")
        time.sleep(0.2)
    return RECORDS / (time.monotonic() - begin)


def start_worker(bootstrap):
    url, config = f"http://127.0.0.1:{free_port()}", os.path.join(work, "worker.properties")
    with open(config, "w") as f:
        f.write(f"bootstrap.servers={bootstrap}\nlisteners={url}\nplugin.path={BUILD}/plugins\noffset.storage.file.filename={work}/offsets\n"
                f"millrace.run.dir={work}/run\nkey.converter=StringConverter\nvalue.converter=StringConverter\n")
    worker = subprocess.Popen([f"{BUILD}/millrace", "standalone", config], stdout=open(f"{work}/log", "w"), stderr=subprocess.STDOUT)
    for _ in range(400):
        try:
            urllib.request.urlopen(url, timeout=1).read()
            return worker, url
        except OSError:
            time.sleep(0.05)
    sys.exit(f"bench: the worker did not start: see {work}/log")


def main():
    os.chmod(work, 0o755)  # the server has a user of its own
    bootstrap, server = start_kafka(), postgres("start")
    text, lines, topic = os.path.join(work, "rows.txt"), os.path.join(work, "rows.json"), fresh("rows")
    with open(text, "w") as t, open(lines, "w") as l:
        for i in range(RECORDS):
            t.write("%d\tcustomer number %d\t%d.5\n" % (i, i, i))
            l.write(SCHEMA % (i, i, i))
    subprocess.run([f"{BUILD}/tests/bench/raw_produce", bootstrap, topic, lines, "linger.ms=5"], check=True, stdout=subprocess.DEVNULL)
    worker, url = start_worker(bootstrap)
    got = {"copy": [], "sink": []}
    for _ in range(RUNS):
        got["copy"].append(plain_copy(text))
        got["sink"].append(sink(url, server, topic))
    copy, sunk = statistics.median(got["copy"]), statistics.median(got["sink"])
    print(f"| topic → PostgreSQL, JSON with schema, COPY | {sunk:,.0f} rows/s | plain COPY {copy:,.0f} rows/s | {sunk / copy:.2f} |")
    worker.send_signal(signal.SIGTERM)
    worker.wait(30)


try:
    main()
finally:
    subprocess.run(["bash", POSTGRES, "stop"], env=dict(os.environ, POSTGRES_RUN=os.path.join(work, "postgres")))
    finish()
