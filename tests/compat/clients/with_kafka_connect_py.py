#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What kafka-connect-py, as PyPI has it, makes of a worker: with_kafka_connect_py.py URL DIR. One line a call, to be compared
between workers; what belongs to one worker or one moment is left out."""
import json
import os
import sys
import time

from kafka_connect import KafkaConnect

url, folder = sys.argv[1], sys.argv[2]
client = KafkaConnect(url=url)
NAME = "by-kafka-connect-py"


def tidy(value):
    if isinstance(value, dict):
        return {k: tidy(v) for k, v in sorted(value.items())
                if k not in ("worker_id", "commit", "kafka_cluster_id", "version", "documentation", "trace")}
    if isinstance(value, list):
        return [tidy(v) for v in value]
    return value.replace(folder, "DIR") if isinstance(value, str) else value


def text_of(error):
    """An exception by its kind, and by the status that it came of."""
    response = getattr(error, "response", None)
    return type(error).__name__ + ("" if response is None else " %d" % response.status_code)


def call(what, fn, *args, **kwargs):
    try:
        result = tidy(fn(*args, **kwargs))
    except Exception as error:  # pylint: disable=broad-except
        result = text_of(error)
    print(what + ": " + json.dumps(result, sort_keys=True))
    return result


def settle(state, tasks):
    """Until the connector and so many tasks are in this state, and both workers have had the time that they need."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            status = client.get_connector_status(NAME)
            if {status["connector"]["state"], *(t["state"] for t in status["tasks"])} == {state} and len(status["tasks"]) == tasks:
                return
        except Exception:  # pylint: disable=broad-except
            pass
        time.sleep(0.1)
    print("never: %s with %d tasks" % (state, tasks))


def gone():
    end = time.monotonic() + 60
    while NAME in client.list_connectors() and time.monotonic() < end:
        time.sleep(0.1)


config = {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "tasks.max": "1",
          "file": os.path.join(folder, "in.txt"), "topic": "by-kafka-connect-py"}
with open(config["file"], "w", encoding="utf-8") as f:
    f.write("one\n")

call("cluster", lambda: sorted(client.get_cluster_info()))
call("plugins", lambda: [p for p in client.list_connector_plugins() if "FileStream" in p["class"]])
call("create", client.create_connector, {"name": NAME, "config": config})
settle("RUNNING", 1)
call("create again", client.create_connector, {"name": NAME, "config": config})
call("list", lambda: NAME in client.list_connectors())
call("list by pattern", lambda: client.list_connectors(pattern="by-kafka-.*"))
call("list by state", lambda: NAME in client.list_connectors(state="running"))
call("get", client.get_connector, NAME)
call("config", client.get_connector_config, NAME)
call("status", client.get_connector_status, NAME)
call("tasks", client.list_connector_tasks, NAME)
call("task status", client.get_connector_task_status, NAME, 0)
call("update", client.update_connector, NAME, dict(config, **{"batch.size": "100"}))
settle("RUNNING", 1)
call("pause", client.pause_connector, NAME)
settle("PAUSED", 1)
call("resume", client.resume_connector, NAME)
settle("RUNNING", 1)
call("restart", client.restart_connector, NAME)
settle("RUNNING", 1)
call("restart with tasks", lambda: client.restart_connector(NAME, include_tasks=True) is not None)
settle("RUNNING", 1)
call("restart task", client.restart_connector_task, NAME, 0)
settle("RUNNING", 1)
call("topics", lambda: sorted(client.list_connector_topics(NAME)))
call("reset topics", client.reset_connector_topics, NAME)
call("validate", lambda: client.validate_connector_config("FileStreamSource", config)["error_count"])
call("validate a bad one", lambda: client.validate_connector_config("FileStreamSource", dict(config, **{"tasks.max": "x"}))["error_count"])
call("stop", client.stop_connector, NAME)
settle("STOPPED", 0)
call("delete", client.delete_connector, NAME)
gone()
call("delete again", client.delete_connector, NAME)
call("get what is not there", client.get_connector, NAME)
call("status of what is not there", client.get_connector_status, NAME)
