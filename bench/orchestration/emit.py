# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a training program, for `bench.py dashboard`: `emit.py RATE` prints RATE metric points a second, four per step, until it is stopped."""
import json
import random
import sys
import time

METRICS = ("train/loss", "train/top1", "lr", "images_per_s")
rate, step, begun = float(sys.argv[1]) / len(METRICS), 0, time.monotonic()
while True:
    due = int((time.monotonic() - begun) * rate)
    while step < due:
        step += 1
        print(json.dumps({"event": "metric", "step": step, "values": {name: random.random() for name in METRICS}}))
    sys.stdout.flush()
    time.sleep(0.05)
