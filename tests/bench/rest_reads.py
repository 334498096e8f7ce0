#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads of REST that go on while a cluster is treated badly: one client a worker, each read 20 ms after the last answer.

    rest_reads.py PATH...      in turn; connectors they name exist all the while

Lines on stdin: "up URL" when a worker is started, "down URL" before it is ended; each is answered by "ok". At the end of
stdin one line of JSON: reads, refused (anything but 200), starting (503 before the first 200: a worker that says it is not
ready yet), and milliseconds. Connections that nobody takes before a worker's first answer are the client's waiting.
"""
import http.client, json, sys, threading, time
from urllib.parse import urlsplit

PAUSE_S = 0.02
PATHS = sys.argv[1:]
took_ms, refused, starting = [], [], 0
lock = threading.Lock()


class Client(threading.Thread):
    def __init__(self, url):
        super().__init__(daemon=True)
        self.at, self.over, self.ready, self.link = urlsplit(url), threading.Event(), False, None
        self.start()

    def read(self, path):
        """The status, 0 for no answer."""
        try:
            if self.link is None:
                self.link = http.client.HTTPConnection(self.at.hostname, self.at.port, timeout=30)
            self.link.request("GET", path)
            reply = self.link.getresponse()
            reply.read()
            return reply.status
        except (OSError, http.client.HTTPException):
            self.link = None
            return 0

    def note(self, path, status, ms):
        global starting
        with lock:
            if status == 200:
                took_ms.append(ms)
                self.ready = True
            elif self.ready or status not in (0, 503):
                refused.append((path, status))
            elif status == 503:
                starting += 1

    def run(self):
        turn = 0
        while not self.over.wait(PAUSE_S):
            turn += 1
            path, start = PATHS[turn % len(PATHS)], time.monotonic()
            status = self.read(path)
            if not self.over.is_set():
                self.note(path, status, (time.monotonic() - start) * 1000)


clients = {}
for line in sys.stdin:
    word, url = line.split()
    if url in clients:
        clients.pop(url).over.set()
    if word == "up":
        clients[url] = Client(url)
    print("ok", flush=True)
for client in clients.values():
    client.over.set()
took_ms.sort()
kinds = {}
for path, status in refused:
    kinds[f"{status} {path}"] = kinds.get(f"{status} {path}", 0) + 1
print(json.dumps({"reads": len(took_ms), "refused": len(refused), "starting": starting, "kinds": kinds,
                  "p50": took_ms[len(took_ms) // 2] if took_ms else 0, "p99": took_ms[len(took_ms) * 99 // 100] if took_ms else 0,
                  "max": took_ms[-1] if took_ms else 0}))
