#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Detection against torchvision in eager: same machine, same PyTorch, same threads, the same state and images, in turns. Mask R-CNN with
ResNet-50 and a pyramid (a training step; an evaluation, up to the masks as they lie in the images), RoIAlign forward and backward, NMS.
Prints the median of seven pairs, with the spread, and ours as a multiple of theirs (above 1: ours is faster), and the peak of the memory
that each takes beside model and data, in a process of its own.

  bench/dense/detection.py [--threads N] [--dtype fp32|bf16] [--only WORD] [--seconds S]     (ABLATE_BENCH: folder of the built detector_server)

bf16 is autocast on both sides. Two images of 384 x 512 with 8 things each, 91 classes.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from pairs import PAIRS, compare, conclude, heading
from server import Server, built, refuse

TASKS = ("step", "evaluate", "roi-align", "nms", "batched-nms")
WITH_MEMORY = ("step", "evaluate")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32")
    arguments.add_argument("--only", default="", metavar="WORD", help="tasks with this in their name")
    arguments.add_argument("--seconds", type=float, default=1.0, help="of one measurement")
    options = arguments.parse_args()
    names = [name for name in TASKS if options.only in name]
    if not names:
        refuse(f"no task has '{options.only}' in its name; there are {', '.join(TASKS)}")
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "detector.safetensors"
        python = [sys.executable, HERE / "torchvision_detector.py", file]
        subprocess.run([*python, "--write"], check=True)
        sides = ([*python, options.threads], [built("detector_server"), file, options.threads])
        print(f"{options.threads} threads, {options.dtype}: milliseconds, median of {PAIRS} pairs in turns")
        heading("task", left="torchvision")
        medians, peaks = {}, {}
        for name in names:
            theirs, ours = (Server(*side) for side in sides)
            medians[name] = compare(name, lambda repeats: theirs(f"{name} {options.dtype} {repeats}"),
                                    lambda repeats: ours(f"{name} {options.dtype} {repeats}"), options.seconds, unit=1e3)
            peaks[name] = theirs("memory"), ours("memory")
            for side in (theirs, ours):
                side.process.stdin.close()
                side.process.wait()
        conclude("task", medians)
        for name in (name for name in WITH_MEMORY if name in names):
            left, right = peaks[name]
            print(f"{name:32} {left / 2**20:7.0f} MiB {right / 2**20:7.0f} MiB at the peak, theirs and ours: {left / right:.2f}")


main()
