# SPDX-License-Identifier: Apache-2.0
"""A trial in ten lines: whatever prints JSON Lines can be ablated. The contract is docs/trainer-protocol.md."""
import json
import os
import random

with open(os.environ["ABLATE_CONFIG"]) as file:  # or take what you need as arguments: {params.rate}, {seed}
    trial = json.load(file)
chance, rate, error = random.Random(trial["seed"]), trial["params"]["rate"], 100.0
for step in range(1, trial["params"]["steps"] + 1):
    error *= 1 - rate + 0.1 * rate * chance.gauss(0, 1)  # a toy in place of training
    print(json.dumps({"event": "metric", "step": step, "values": {"val/top1": 100 - error}}), flush=True)
