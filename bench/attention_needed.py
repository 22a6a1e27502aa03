#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that the embedded images need attention: the demo's model with its attention branch removed stays within 5 points of chance after the
demo's schedule (and after three times that); the original attention reaches 80 % in at most 60 CPU-seconds. One thread each.

  bench/attention_needed.py [SEEDS]      # default 3
"""
import sys

from trainer_run import train

CHANCE = 10.0
seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
rows = []
for label, attention, stretch in (("original attention", {"kernel": "dot"}, 1), ("attention removed", {"kernel": "none"}, 1),
                                  ("attention removed, 3 x the epochs", {"kernel": "none"}, 3)):
    for seed in range(seeds if stretch == 1 else 1):
        recipe = {"use": "demo"}
        if stretch != 1:
            recipe["epochs"] = 3 * 2
        run = train({"model": {"preset": "simple-vit-nano", "attention": attention}, "data": {"name": "shapes"}, "recipe": recipe,
                     "seed": seed}, label=f"{label}, seed {seed}:")
        rows.append((label, seed, run))
        print(f"{label:36} seed {seed}   val/top1 {run['top1']:6.2f} %   {run['cpu_s']:6.1f} CPU-s   {run['images_per_s']:7.0f} images/s", flush=True)
removed = max(run["top1"] for label, _, run in rows if label.startswith("attention removed"))
kept = [run for label, _, run in rows if label == "original attention"]
print(f"without attention at most {removed:.2f} % (chance {CHANCE:.0f} %); with it at least {min(r['top1'] for r in kept):.2f} % "
      f"in at most {max(r['cpu_s'] for r in kept):.1f} CPU-s")
sys.exit(not (removed <= CHANCE + 5 and all(r["top1"] >= 80 and r["cpu_s"] <= 60 for r in kept)))
