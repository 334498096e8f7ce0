#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Strimzi's operator and kafbat's UI ask of a worker, and the members of its answers that they read, of the types that they read
them as, by their sources (KafkaConnectApiImpl.java; kafka-connect-api.yaml): as_strimzi_and_kafbat.py URL DIR. Neither runs without
a cluster around it, so this stands in for them. A line for each answer, to be compared between workers."""
import json
import os
import sys
import time
import urllib.error
import urllib.request

url, folder = sys.argv[1], sys.argv[2]
NAME = "by-operators"
SINK = {"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "tasks.max": 2, "topics": NAME,
        "file": os.path.join(folder, "out.txt")}
STATES = {"RUNNING", "FAILED", "PAUSED", "UNASSIGNED", "RESTARTING"}
TYPES = {"BOOLEAN", "CLASS", "DOUBLE", "INT", "LIST", "LONG", "PASSWORD", "SHORT", "STRING"}


def send(method, path, body=None):
    headers = {"Accept": "application/json"}
    if body is not None or method == "DELETE":
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(url + path, None if body is None else json.dumps(body).encode(), headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            status, text = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read()
    answer = json.loads(text) if text else None
    if status >= 400:
        text_of(answer["message"])
    return status, answer


def check(value, kind, what):
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise SystemExit("%s is read as %s: %s" % (what, kind.__name__, json.dumps(value)))
    return value


def text_of(value, what="a text"):
    return check(value, str, what)


def perhaps(read, value, what):
    return None if value is None else read(value, what)


def one_of(choices, value, what):
    if value not in choices:
        raise SystemExit("%s is none that it knows: %s" % (what, json.dumps(value)))
    return value


def map_of(read, value, what):
    return {k: read(v, what + "." + k) for k, v in check(value, dict, what).items()}


def list_of(read, value, what):
    return [read(v, what) for v in check(value, list, what)]


def task_id(value, what):
    return text_of(value["connector"], what), check(value["task"], int, what)


def connector(value):
    return (text_of(value["name"]), map_of(text_of, value["config"], "config"), list_of(task_id, value["tasks"], "tasks"),
            one_of({"source", "sink"}, value["type"], "type"))


def life(value, what):
    text_of(value["worker_id"], what)
    perhaps(text_of, value.get("trace"), what)
    return one_of(STATES, value["state"], what)


def task_status(value, what):
    return check(value["id"], int, what), life(value, what)


def status(value):
    return text_of(value["name"]), life(value["connector"], "connector"), list_of(task_status, value["tasks"], "tasks")


def definition(value, what):
    one_of(TYPES, value["type"], what)
    one_of({"LOW", "MEDIUM", "HIGH"}, value["importance"], what)
    one_of({"SHORT", "MEDIUM", "LONG", "NONE"}, value["width"], what)
    check(value["required"], bool, what)
    for member in ("default_value", "group"):
        perhaps(text_of, value[member], what)
    list_of(text_of, value["dependents"], what)
    return text_of(value["name"]), text_of(value["display_name"]), text_of(value["documentation"]) is not None


def verdict(value, what):
    check(value["visible"], bool, what)
    perhaps(text_of, value["value"], what)
    list_of(text_of, value["recommended_values"], what)
    return text_of(value["name"]), list_of(text_of, value["errors"], what)


def validation(value):
    list_of(text_of, value["groups"], "groups")
    for config in value["configs"]:
        definition(config["definition"], config["definition"]["name"])
    wrong = [v for v in (verdict(c["value"], c["value"]["name"]) for c in value["configs"]) if v[1]]
    return text_of(value["name"]), check(value["error_count"], int, "error_count"), wrong


def plugin(value, what):
    perhaps(text_of, value["version"], what)
    return text_of(value["class"], what), text_of(value["type"], what)


def tell(what, read, method, path, body=None):
    code, answer = send(method, path, body)
    shown = read(answer) if read is not None and code < 400 else answer and answer.get("message")
    print("%s: %d %s" % (what, code, json.dumps(shown).replace(folder, "DIR")))


def settle(state, tasks=2):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        code, answer = send("GET", "/connectors/%s/status" % NAME)
        if code == 200 and status(answer)[1:] == (state, [(i, state) for i in range(tasks)]):
            return
        time.sleep(0.1)
    raise SystemExit("it never was %s" % state)


at = "/connectors/" + NAME
tell("status of none", status, "GET", at + "/status")
tell("create", connector, "PUT", at + "/config", SINK)
settle("RUNNING")
tell("list", lambda v: NAME in list_of(text_of, v, "names"), "GET", "/connectors")
tell("create again", connector, "POST", "/connectors", {"name": NAME, "config": SINK})
tell("connector", connector, "GET", at)
tell("config", lambda v: map_of(text_of, v, "config"), "GET", at + "/config")
tell("status", status, "GET", at + "/status")
tell("task", lambda v: task_status(v, "task"), "GET", at + "/tasks/0/status")
tell("tasks", lambda v: [(task_id(t["id"], "id"), sorted(map_of(text_of, t["config"], "config"))) for t in v], "GET", at + "/tasks")
tell("topics", lambda v: {k: list_of(text_of, t["topics"], k) for k, t in v.items()}, "GET", at + "/topics")
tell("update", connector, "PUT", at + "/config", dict(SINK, **{"errors.tolerance": "all"}))
settle("RUNNING")
for verb, state in (("pause", "PAUSED"), ("resume", "RUNNING")):
    tell(verb, None, "PUT", "%s/%s" % (at, verb))
    settle(state)
tell("restart", None, "POST", at + "/restart?includeTasks=false&onlyFailed=false")
settle("RUNNING")
tell("restart all", lambda v: text_of(v["connector"]["state"]) in STATES, "POST", at + "/restart?includeTasks=true&onlyFailed=false")
settle("RUNNING")
tell("restart of a task", None, "POST", at + "/tasks/0/restart")
settle("RUNNING")
tell("restart of none", None, "POST", at + "/tasks/7/restart")
tell("plugins", lambda v: [p for p in list_of(lambda p, _: plugin(p, "plugin"), v, "plugins") if "FileStream" in p[0]], "GET",
     "/connector-plugins")
tell("validate", validation, "PUT", "/connector-plugins/FileStreamSink/config/validate", dict(SINK, name=NAME))
tell("validate a bad one", validation, "PUT", "/connector-plugins/FileStreamSink/config/validate", dict(SINK, topics="", name=NAME))
tell("loggers", lambda v: text_of(v["root"]["level"]), "GET", "/admin/loggers")
tell("set a logger", lambda v: "org.example.mine" in list_of(text_of, v, "names"), "PUT", "/admin/loggers/org.example.mine",
     {"level": "WARN"})
tell("bad", connector, "PUT", at + "/config", dict(SINK, **{"tasks.max": "none"}))
tell("stop", None, "PUT", at + "/stop")
tell("delete", None, "DELETE", at)
gone = time.monotonic() + 60
while send("GET", at + "/status")[0] != 404 and time.monotonic() < gone:
    time.sleep(0.1)
tell("status of one that is gone", status, "GET", at + "/status")
tell("delete again", None, "DELETE", at)
