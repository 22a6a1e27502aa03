# SPDX-License-Identifier: Apache-2.0
"""Runs ablate-trainer on one configuration and returns what it said and what it cost."""
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRAINER = pathlib.Path(os.environ.get("ABLATE_TRAINER", ROOT / "build/bin/ablate-trainer"))


def train(config, threads=1, data_root=None, label=""):
    """Returns {"top1", "wall_s", "cpu_s", "train_s", "images_per_s"}; progress goes to stderr."""
    if not TRAINER.exists():
        sys.exit(f"no {TRAINER}: run make build, or set ABLATE_TRAINER")
    with tempfile.TemporaryDirectory(prefix="ablate-bench-") as folder:
        file = pathlib.Path(folder) / "config.json"
        file.write_text(json.dumps(config))
        command = [str(TRAINER), "train", "--config", str(file), "--run-dir", folder, "--threads", str(threads), "--json",
                   "--checkpoint-seconds", "3600"]
        if data_root:
            command += ["--data-root", str(data_root)]
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        result, total, drawn = {"images_per_s": []}, 1, 0.0
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "start":
                total = event["total_steps"]
            elif event["event"] == "metric":
                values = event["values"]
                if "val/top1" in values:
                    result["top1"] = values["val/top1"]
                if "images_per_s" in values:
                    result["images_per_s"].append(values["images_per_s"])
                if time.monotonic() - drawn > (2 if sys.stderr.isatty() else 30):
                    drawn = time.monotonic()
                    left = (drawn - begun) / event["step"] * (total - event["step"])
                    ends = ("\r", "") if sys.stderr.isatty() else ("", "\n")
                    print(f"{ends[0]}{label} step {event['step']}/{total}, val/top1 {result.get('top1', 0):.2f} %, {left:.0f} s left   ",
                          end=ends[1], file=sys.stderr, flush=True)
            elif event["event"] == "end" and event["status"] != "completed":
                sys.exit(f"\n{label}: {event['status']}: {event.get('reason')}")
        if process.wait() != 0:
            sys.exit(f"\n{label}: ablate-trainer ended with {process.returncode}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
    result["wall_s"] = time.monotonic() - begun
    result["cpu_s"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    result["images_per_s"] = sorted(result["images_per_s"])[len(result["images_per_s"]) // 2]
    return result
