#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the Terraform provider for Kafka Connect (Mongey/terraform-provider-kafka-connect, with ricardo-ch/go-kafka-connect v3)
sends, and what it reads of the answers, by its source: as_terraform_provider.py URL DIR. The Go module proxy does not serve it, so
this stands in for it. It plans and applies a connector, changes it, pauses and resumes it, plans again where nothing has changed,
imports and destroys it; each request and each plan is a line, to be compared between workers."""
import json
import os
import sys
import time
import urllib.error
import urllib.request

url, folder = sys.argv[1], sys.argv[2]
NAME = "by-terraform"
WAIT_S = 120  # the library's, as are the types and statuses below
CONFIG = {"name": NAME, "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "tasks.max": "2",
          "topics": NAME, "file": os.path.join(folder, "out.txt")}
SENSITIVE = {"consumer.override.ssl.key.password": "not-for-all-to-see"}


class Failed(Exception):
    """The provider ends with this error."""


def send(method, path, body=None):
    """Status and answer, tried again after 409 as the library does."""
    headers = {"Accept": "application/json", "User-Agent": "go-resty"}
    data = None
    if body is not None:
        headers["Content-Type"] = "application/json"
        data = json.dumps(body, sort_keys=True).encode()
    for left in range(5, -1, -1):
        request = urllib.request.Request(url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                status, text = answer.status, answer.read()
                kind = answer.headers.get("Content-Type", "")
        except urllib.error.HTTPError as error:
            status, text, kind = error.code, error.read(), error.headers.get("Content-Type", "")
        if status != 409 or left == 0:
            break
        time.sleep(0.5)
    # The library decodes what calls itself JSON, and nothing else.
    return status, json.loads(text) if text and "json" in kind else None


def texts(value):
    """As Go decodes into map[string]string."""
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise Failed("json: cannot unmarshal %s" % json.dumps(value))
    return value


def request(what, method, path, body=None, missing=False):
    status, answer = send(method, path, body)
    print("%s: %s %s: %d" % (what, method, path, status))
    if status >= 400 and not (missing and status == 404):
        raise Failed("%s : %s" % (what, json.dumps(answer, sort_keys=True)))
    return status, answer


def until(condition):
    end = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > end:
            raise Failed("timeout")
        time.sleep(0.1)


def get(path=""):
    return send("GET", "/connectors/%s%s" % (NAME, path))


def is_up_to_date(config):
    status, answer = get("/config")
    return status == 200 and texts(answer) == config


def state():
    status, answer = get("/status")
    for task in answer["tasks"] if status == 200 else []:
        if not isinstance(task["id"], int) or not isinstance(task["state"], str):
            raise Failed("json: cannot unmarshal %s" % json.dumps(task))
    return texts(answer["connector"])["state"] if status == 200 else None


def known(config):
    """The resource's state: what was read, without what is sensitive."""
    return {k: v for k, v in texts(config).items() if k not in SENSITIVE}


def read():
    status, answer = request("Get connector", "GET", "/connectors/" + NAME, missing=True)
    if status == 200:
        for task in answer["tasks"]:
            if task["connector"] != NAME or not isinstance(task["task"], int):
                raise Failed("json: cannot unmarshal %s" % json.dumps(task))
    return known(answer["config"]) if status == 200 else None


def plan(wanted):
    now = read()
    changed = sorted(k for k in set(wanted) | set(now or {}) if (now or {}).get(k) != wanted.get(k))
    print("plan: " + ("no changes" if not changed else ", ".join(changed)))


def create(config):
    status, answer = request("Create connector", "POST", "/connectors", {"name": NAME, "config": dict(config, **SENSITIVE)})
    until(lambda: get()[0] == 200)
    print("created: %d %s" % (status, known(answer["config"]) == config))
    read()


def update(config):
    whole = dict(config, **SENSITIVE)
    status, answer = request("Update connector", "PUT", "/connectors/%s/config" % NAME, whole)
    until(lambda: is_up_to_date(whole))
    print("updated: %d %s" % (status, known(answer["config"]) == config))
    read()


def set_state(verb, wanted):
    request("%s connector" % verb.capitalize(), "PUT", "/connectors/%s/%s" % (NAME, verb))
    until(lambda: state() == wanted)


def delete():
    request("Delete connector", "DELETE", "/connectors/" + NAME)
    until(lambda: get()[0] == 404)


def step(what, fn, *args):
    try:
        fn(*args)
    except Failed as error:
        print("%s: Error: %s" % (what, error))


other = dict(CONFIG, **{"tasks.max": "1", "errors.tolerance": "all"})
step("plan", plan, CONFIG)
step("apply", create, CONFIG)
step("plan", plan, CONFIG)
step("apply again", create, CONFIG)
step("plan", plan, other)
step("apply", update, other)
step("plan", plan, other)
step("pause", set_state, "pause", "PAUSED")
step("plan", plan, other)
step("resume", set_state, "resume", "RUNNING")
step("restart", request, "Restart connector", "POST", "/connectors/%s/restart" % NAME)
until(lambda: state() == "RUNNING")
step("apply what is wrong", update, dict(other, **{"tasks.max": "none"}))
step("plan", plan, other)
step("destroy", delete)
step("destroy again", delete)
step("plan", plan, CONFIG)
