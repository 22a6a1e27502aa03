# SPDX-License-Identifier: Apache-2.0
"""Readers of a dashboard's API, for `bench.py ingest`: `readers.py URL COUNT PAUSE`. Each asks one question after the other, with a pause of so
many seconds between them, until SIGTERM. Prints [answers, refusals, seconds]."""
import http.client
import json
import signal
import sys
import threading
import time
import urllib.parse

QUESTIONS = ("sweeps", "sweeps/points", "sweeps/points/table", "runs?limit=100", "runs/1", "metrics?run=1&name=train/loss&max_points=500")
url, count, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
over = threading.Event()
tallies = [[0, 0] for _ in range(count)]  # of each: answers, refusals


def read(number):
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=60)
    turn = number
    while not over.wait(pause):
        turn += 1
        try:
            connection.request("GET", "/api/v1/" + QUESTIONS[turn % len(QUESTIONS)])
            answer = connection.getresponse()
            answer.read()
            tallies[number][answer.status != 200] += 1
        except (OSError, http.client.HTTPException):
            connection.close()
            tallies[number][1] += 1


signal.signal(signal.SIGTERM, lambda *_: over.set())
begun = time.perf_counter()
threads = [threading.Thread(target=read, args=(number,), daemon=True) for number in range(count)]
for thread in threads:
    thread.start()
over.wait()
seconds = time.perf_counter() - begun
print(json.dumps([sum(tally[0] for tally in tallies), sum(tally[1] for tally in tallies), seconds]), flush=True)
