#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""COCO's average precision against pycocotools (pip install pycocotools): the same truths and detections in memory on both sides, in turns on
one machine; evaluate() and accumulate() there, match and coco_scores here. Prints the median seconds of each, the ratio and how far the
values of AP are apart.

  bench/dense/coco_evaluation.py [--images N] [--detections N] [--regions boxes|masks] [--turns N]     (ABLATE_BENCH: folder of coco_server)
"""
import argparse
import contextlib
import io
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import numpy as np
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from server import built

CATEGORIES, SIDE = 80, 640


def boxes(numbers, count):
    size = np.exp(numbers.uniform(np.log(8), np.log(400), (count, 2)))
    return np.concatenate([numbers.uniform(0, 1, (count, 2)) * (SIDE - size), size], 1).round(2)


def shape(box):
    x, y, width, height = box
    t = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    points = np.stack([x + width / 2 * (1 + np.cos(t)), y + height / 2 * (1 + np.sin(t))], 1).reshape(-1)
    return coco_mask.frPyObjects([points.tolist()], SIDE, SIDE)[0]


def made(options):
    """COCO's dictionaries of about seven truths a picture, and of detections near them and elsewhere."""
    numbers = np.random.default_rng(0)
    truths, found = [], []
    for image in range(1, options.images + 1):
        own = []
        for box in boxes(numbers, numbers.integers(1, 14)):
            truths.append({"id": len(truths) + 1, "image_id": image, "category_id": int(numbers.integers(1, CATEGORIES + 1)),
                           "bbox": box.tolist(), "area": float(box[2] * box[3] * 0.7), "iscrowd": int(numbers.random() < 0.01)})
            own.append(truths[-1])
        for box in boxes(numbers, options.detections):
            category = int(numbers.integers(1, CATEGORIES + 1))
            if numbers.random() < 0.3:
                near = own[numbers.integers(len(own))]
                category = near["category_id"]
                box = (np.array(near["bbox"]) * (1 + 0.06 * numbers.normal(size=4))).round(2)
            found.append({"image_id": image, "category_id": category, "bbox": box.tolist(), "score": round(float(numbers.random()), 4)})
    if options.regions == "masks":
        for entry in truths + found:
            entry["segmentation"] = shape(entry["bbox"])
        for entry in found:
            del entry["bbox"]
    return truths, found


def write(file, truths, found, images):
    by_image = {image: [] for image in range(1, images + 1)}
    for kind, entries in (("truth", truths), ("found", found)):
        for entry in entries:
            counts = entry["segmentation"]["counts"].decode() if "segmentation" in entry else "-"
            values = (entry["area"], entry["iscrowd"]) if kind == "truth" else (entry["score"],)
            words = (kind, entry["category_id"] - 1, *map(repr, entry.get("bbox", [0, 0, 0, 0])), *map(repr, values), counts)
            by_image[entry["image_id"]].append(" ".join(map(str, words)))
    for lines in by_image.values():
        print("picture", *lines, sep="\n", file=file)


def theirs(truth, results, kind):
    evaluation = COCOeval(truth, results, kind)
    begun = time.perf_counter()
    evaluation.evaluate()
    evaluation.accumulate()
    seconds = time.perf_counter() - begun
    evaluation.summarize()
    return seconds, evaluation.stats[0]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--images", type=int, default=5000)
    arguments.add_argument("--detections", type=int, default=100)
    arguments.add_argument("--regions", choices=("boxes", "masks"), default="boxes")
    arguments.add_argument("--turns", type=int, default=3)
    options = arguments.parse_args()
    truths, found = made(options)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file, contextlib.redirect_stdout(io.StringIO()) as silent:
        write(file, truths, found, options.images)
        file.flush()
        truth = COCO()
        truth.dataset = {"info": {}, "images": [{"id": i, "width": SIDE, "height": SIDE} for i in range(1, options.images + 1)],
                         "annotations": truths, "categories": [{"id": k, "name": str(k)} for k in range(1, CATEGORIES + 1)]}
        truth.createIndex()
        results = truth.loadRes(found)
        server = subprocess.Popen([str(built("coco_server")), file.name, options.regions, str(CATEGORIES), str(SIDE)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)

        def ours(threads):
            server.stdin.write(f"{threads}\n")
            server.stdin.flush()
            return tuple(map(float, server.stdout.readline().split()))

        ours(1)
        turns = []
        for _ in range(options.turns):
            turns.append((theirs(truth, results, "bbox" if options.regions == "boxes" else "segm"), ours(1), ours(2)))
    medians = [statistics.median(turn[side][0] for turn in turns) for side in range(3)]
    apart = max(abs(turn[0][1] - turn[side][1]) for turn in turns for side in (1, 2))
    print(f"{options.images} images, {options.detections} detections each, {CATEGORIES} categories, {options.regions}, on "
          f"{os.cpu_count()} cores; median of {options.turns} turns")
    print(f"pycocotools, one thread   {medians[0]:8.2f} s")
    for name, side in (("ours, one thread", 1), ("ours, two threads", 2)):
        ratios = sorted(turn[0][0] / turn[side][0] for turn in turns)
        print(f"{name:25} {medians[side]:8.2f} s   {medians[0] / medians[side]:6.1f} times as fast ({ratios[0]:.1f} to {ratios[-1]:.1f})")
    print(f"AP {turns[0][0][1]:.4f}, apart by at most {apart:.1e}")
    if apart > 1e-6:
        sys.exit("the values are not the same")


if __name__ == "__main__":
    main()
