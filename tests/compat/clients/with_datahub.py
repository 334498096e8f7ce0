#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What DataHub's Kafka Connect source, as PyPI has it, finds in a worker: with_datahub.py URL DIR. A line for each fact, to be
compared between workers."""
import json
import os
import subprocess
import sys
import time
import urllib.request

url, folder = sys.argv[1], sys.argv[2]
FILE = "org.apache.kafka.connect.file.FileStream%sConnector"
CONNECTORS = {"by-datahub": {"connector.class": FILE % "Source", "tasks.max": "1", "file": folder + "/in.txt", "topic": "by-datahub"},
              "by-datahub-sink": {"connector.class": FILE % "Sink", "tasks.max": "1", "file": folder + "/out.txt", "topics": "by-datahub"}}
RECIPE = {"source": {"type": "kafka-connect",
                     "config": {"connect_uri": url, "cluster_name": "c",
                                "generic_connectors": [{"connector_name": "by-datahub", "source_dataset": "in", "source_platform": "file"}]}},
          "sink": {"type": "file", "config": {"filename": folder + "/found.json"}}}


def call(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read() or b"null")


def topics(name):
    return call("GET", "/connectors/%s/topics" % name)[name]["topics"]


with open(folder + "/in.txt", "w", encoding="utf-8") as f:
    f.write("one\n")
for name, config in CONNECTORS.items():
    call("PUT", "/connectors/%s/config" % name, config)
end = time.monotonic() + 60
while not all(topics(name) for name in CONNECTORS) and time.monotonic() < end:
    time.sleep(0.1)
with open(folder + "/recipe.json", "w", encoding="utf-8") as f:
    json.dump(RECIPE, f)
run = subprocess.run([os.path.join(os.path.dirname(sys.executable), "datahub"), "ingest", "run", "--no-progress", "-c", folder + "/recipe.json"],
                     env=dict(os.environ, DATAHUB_TELEMETRY_ENABLED="false", HOME=folder), timeout=240, check=False,
                     stdout=sys.stderr)
print("exit code %d" % run.returncode)
with open(folder + "/found.json", encoding="utf-8") as f:
    for fact in sorted(json.load(f), key=lambda fact: (fact["entityUrn"], fact["aspectName"])):
        fact.pop("systemMetadata", None)
        print(json.dumps(fact, sort_keys=True).replace(folder, "DIR"))
for name in CONNECTORS:
    call("DELETE", "/connectors/" + name)
