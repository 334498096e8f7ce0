#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What kpops, as PyPI has it, makes of a worker: with_kpops.py URL DIR. It deploys a pipeline of a source and a sink, twice, sees
what a bad one lacks, and destroys it; its words are printed, to be compared between workers."""
import os
import re
import subprocess
import sys

url, folder = sys.argv[1], sys.argv[2]
KPOPS = os.path.join(os.path.dirname(sys.executable), "kpops")
PIPELINE = """- type: kafka-source-connector
  name: by-kpops
  prefix: ""
  config: {{connector.class: org.apache.kafka.connect.file.FileStreamSourceConnector, tasks.max: {tasks}, file: "{folder}/in.txt",
           topic: by-kpops}}
- type: kafka-sink-connector
  name: by-kpops-sink
  prefix: ""
  config: {{connector.class: org.apache.kafka.connect.file.FileStreamSinkConnector, tasks.max: 1, file: "{folder}/out.txt",
           topics: by-kpops}}
"""


def write(name, text):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def kpops(command, pipeline):
    run = subprocess.run([KPOPS, *command.split(), os.path.relpath(pipeline, folder)], cwd=folder, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
    text = re.sub("\x1b\\[[0-9;]*m", "", run.stdout).replace(url, "URL").replace(folder, "DIR")
    print("%s: %d\n%s" % (command, run.returncode, "\n".join(line.rstrip() for line in text.splitlines() if "Traceback" not in line)))


write("config.yaml", "kafka_brokers: 127.0.0.1:9092\nkafka_connect: {url: \"%s\"}\n" % url)
write("in.txt", "one\n")
good = write("good/pipeline.yaml", PIPELINE.format(tasks=1, folder=folder))
bad = write("bad/pipeline.yaml", PIPELINE.format(tasks="none", folder=folder))
for step in ("deploy --dry-run", "deploy --execute", "deploy --dry-run", "deploy --execute"):
    kpops(step, good)
kpops("deploy --dry-run", bad)
for step in ("destroy --dry-run", "destroy --execute", "destroy --execute"):
    kpops(step, good)
