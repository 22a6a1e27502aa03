# SPDX-License-Identifier: Apache-2.0
"""A trainer that is killed at ten random points, each time resumed from its newest checkpoint, ends with the same file, byte by
byte, and the same points as one that was left alone."""
import json
import os
import pathlib
import random
import subprocess
import tempfile
import time

from fleet import BIN, expect, say

KILLS = 10
TRIAL = {
    "model": {"family": "simple-vit", "dim": 48, "depth": 2, "heads": 3, "dim_head": 16, "patch": 8,
              "attention": {"kernel": "gaussian", "probe": "inside"}},
    "data": {"name": "shapes", "train_images": 800, "val_images": 100},
    "recipe": {"use": "demo", "epochs": 12, "batch": 20, "eval_every": 2, "crop": "pad", "flip": 0.5, "mixing": "mixup",
               "mixing_alpha": 0.8, "drop_path": 0.1, "ema": 0.9, "random_erasing": 0.25, "precision": "bf16"},
    "seed": 0,
}


class Run:
    """One process of the trainer, whose events are read as they come."""

    def __init__(self, config, folder, resume=None):
        folder.mkdir()
        command = [BIN / "ablate-trainer", "train", "--config", config, "--run-dir", folder, "--checkpoint-seconds", "0.02", "--json"]
        if resume:
            command += ["--resume", resume["path"], "--resume-sha256", resume["sha256"]]
        self.process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
        self.points, self.checkpoint, self.status = {}, resume, None

    def read(self, until=lambda run: False):
        for line in self.process.stdout:
            if not line.endswith("\n"):
                break  # cut off by the kill
            event = json.loads(line)
            if event["event"] == "metric":
                self.points[event["step"]] = self.points.get(event["step"], {}) | {
                    name: value for name, value in event["values"].items() if name.startswith(("train/", "val")) or name == "lr"}
            elif event["event"] == "checkpoint":
                self.checkpoint = event
            elif event["event"] == "start":
                self.started = event
            elif event["event"] == "end":
                self.status = event["status"]
            if until(self):
                return

    def kill(self):
        self.process.kill()
        self.read()  # what it had said
        self.process.wait()


def merge(points, more):
    """Adds what a later process measured; what both did must be equal."""
    for step, values in more.items():
        for name, value in values.items():
            before = points.setdefault(step, {}).setdefault(name, value)
            if before != value:
                raise AssertionError(f"{name} at step {step} was {before}, then {value}")


def main():
    seed = int(os.environ.get("ABLATE_SEED", time.time_ns() % 1_000_000))
    say(f"random points from ABLATE_SEED={seed}")
    choose = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="ablate-killed-") as name:
        folder = pathlib.Path(name)
        config = folder / "trial.json"
        config.write_text(json.dumps(TRIAL))
        whole = Run(config, folder / "whole")
        whole.read()
        expect(whole.process.wait() == 0 and whole.status == "completed", "a run that is left alone completes")
        steps = sorted(whole.points)[-1]

        points, resume = {}, None
        for kill, at in enumerate(sorted(choose.sample(range(1, steps), KILLS)), 1):
            run = Run(config, folder / f"{kill}", resume)
            run.read(until=lambda run: run.points and max(run.points) >= at and run.checkpoint is not None)
            time.sleep(choose.random() * 0.05)
            run.kill()
            expect(run.process.returncode < 0 or run.status == "completed", f"kill {kill}: at step {max(run.points)} of {steps}")
            merge(points, run.points)
            resume = run.checkpoint
        last = Run(config, folder / "last", resume)
        last.read()
        expect(last.process.wait() == 0 and last.status == "completed", "the resumed run completes")
        expect(last.started["bit_exact"], "it says that it goes on to the bit")
        merge(points, last.points)
        expect(points == whole.points, f"all {len(points)} points are those of the run that was left alone")
        expect(last.checkpoint["sha256"] == whole.checkpoint["sha256"], "and so is its last checkpoint, byte by byte")


main()
