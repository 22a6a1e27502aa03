#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time and memory that `ablate plan --measure` predicts of trials of different shape, against what the same trials take when they are really
trained: alone, one after the other, by ablate-trainer. The aim: times within 25 %, memory from 1.00 to 1.10 of the process's peak.

  bench/plan/bench.py --data FOLDER      # CIFAR-10, in any form that the trainer reads
  bench/plan/bench.py --data FOLDER --epochs 6 --only simple-vit,resnet
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get("ABLATE_BIN", ROOT / "build/bin"))

# name: model, image size, batch, precision, images to train on, recipe beside that
SHAPES = {
    "simple-vit fp32": ({"preset": "simple-vit-nano"}, 32, 64, "fp32", 10000, {}),
    "simple-vit bf16": ({"preset": "simple-vit-ti"}, 96, 32, "bf16", 160, {"ema": 0.99}),
    "vit bf16": ({"preset": "vit_tiny_patch16_224"}, 96, 24, "bf16", 240, {}),
    "xcit fp32": ({"preset": "xcit_nano_12_p16_224"}, 96, 32, "fp32", 160, {}),
    "key-vit fp32": ({"preset": "key-vit-s"}, 64, 16, "fp32", 96, {}),
    "resnet fp32": ({"preset": "resnet50"}, 48, 16, "fp32", 128, {}),
    "efficientnet bf16": ({"preset": "efficientnet_b0"}, 64, 16, "bf16", 160, {}),
    "efficientnet, in parts": ({"preset": "efficientnet_b0"}, 48, 64, "fp32", 256, {"accumulate": 4}),
}


def document(name, epochs):
    model, size, batch, precision, images, more = SHAPES[name]
    return {"model": model, "data": {"name": "cifar10", "image_size": size, "train_images": images, "val_images": max(64, images // 5)},
            "recipe": {"epochs": epochs, "batch": batch, "precision": precision, "lr": 1e-4, "eval_every": epochs / 3,
                       "crop": "resized", "interpolation": "bilinear", "flip": 0.5, **more}}


def settings(prefix, values):
    return {f"{prefix}.{key}": value for key, value in values.items()}


def plan(names, epochs, args, home):
    rows = []
    for i, name in enumerate(names):
        doc = document(name, epochs)
        rows.append({"id": f"r{i}", "label": name,
                     "set": {**settings("model", doc["model"]), **settings("data", doc["data"]), **settings("recipe", doc["recipe"])}})
    sweep = {"ablate": 1, "name": "bench-plan", "base": {}, "rows": rows, "seeds": [0], "table": {"columns": [{"name": "acc", "metric": "val/top1"}]}}
    file = home / "sweep.yaml"
    file.write_text(json.dumps(sweep))
    done = subprocess.run([BIN / "ablate", "plan", file, "--json", "--measure", "--threads", str(args.threads), "--device", "cpu",
                           "--data", f"cifar10={args.data}"], capture_output=True, text=True, env={**os.environ, "ABLATE_HOME": str(home)})
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return {name: row for name, row in zip(names, json.loads(done.stdout)["rows"])}


def train(name, epochs, args, home):
    """Wall-clock seconds of a training, the same less the time that its process waited for a processor, and the most memory it took in bytes."""
    with tempfile.TemporaryDirectory(dir=home) as folder:
        config = pathlib.Path(folder) / "config.json"
        config.write_text(json.dumps({**document(name, epochs), "seed": 0}))
        begun, waited, out = time.monotonic(), 0.0, pathlib.Path(folder) / "events"
        with out.open("w") as events_file:
            process = subprocess.Popen([BIN / "ablate-trainer", "train", "--config", config, "--run-dir", f"{folder}/run", "--threads", str(args.threads),
                               "--data-root", args.data, "--json"], stdout=events_file,
                                       env={**os.environ, "GOMP_SPINCOUNT": "1000"})
        while process.poll() is None:
            try:  # time for which its main thread could have run, had a core been free
                waited = float(pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/schedstat").read_text().split()[1]) / 1e9
            except (OSError, IndexError):
                pass
            time.sleep(0.02)
        took = time.monotonic() - begun
        events = [json.loads(line) for line in out.read_text().splitlines()]
        if process.returncode or events[-1].get("status") != "completed":
            sys.exit(f"{name}: {events[-1:]}")
        return took, took - waited, max(event["values"]["memory_bytes"] for event in events if "memory_bytes" in event.get("values", {}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--only", default="", help="parts of names, with commas between them")
    parser.add_argument("--together", type=int, default=4, help="rows of one sweep, which share the 20 seconds")
    args = parser.parse_args()
    names = [name for name in SHAPES if any(part in name for part in args.only.split(","))]
    worst_time, least, most = 1.0, 9.0, 0.0
    with tempfile.TemporaryDirectory(prefix="ablate-bench-") as folder:
        home = pathlib.Path(folder)
        for _ in range(args.repeat):
            predicted = {}
            for first in range(0, len(names), args.together):  # they share the 20 seconds
                predicted |= plan(names[first:first + args.together], args.epochs, args, home)
            print(f"load before: {os.getloadavg()[0]:.1f}")
            print(f"{'':24} {'predicted':>10} {'between':>16} {'took':>8} {'ratio':>6} {'by the wall':>11}   {'memory':>9} {'peak':>9} {'ratio':>6}")
            for name in names:
                row = predicted[name]
                wall, took, peak = train(name, args.epochs, args, home)
                seconds, memory = row["time"]["value"], row["memory_bytes"]
                ratio, share = seconds / took, memory / peak
                worst_time, least, most = max(worst_time, ratio, 1 / ratio), min(least, share), max(most, share)
                between = f"{row['time']['low']:.1f} to {row['time']['high']:.1f}"
                print(f"{name:24} {seconds:8.1f} s {between:>16} {took:6.1f} s {ratio:6.2f} {wall:9.1f} s  {memory / 2**20:5.0f} MiB {peak / 2**20:5.0f} MiB "
                      f"{share:6.2f}   {row['time']['from']}: {row['time']['why']}", flush=True)
    print(f"times within a factor of {worst_time:.2f}; memory {least:.2f} to {most:.2f} of the peak")


main()
