#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Semantic FPN on XCiT-T12/16 against the same in Python: same machine, same PyTorch, same threads, the same state and images, in turns. A
training step with its optimiser, an evaluation to the class of every pixel, the loss alone. Prints the median of seven pairs, with the spread,
and ours as a multiple of theirs (above 1: ours is faster), and the peak of the memory that each takes beside model and data, in a process of
its own.

  bench/dense/segmentation.py [--threads N] [--dtype fp32|bf16] [--only WORD] [--seconds S]     (ABLATE_BENCH: folder of the built segmenter_server)

bf16 is autocast on both sides. Two images of 512 x 512, 150 classes.
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

TASKS = ("step", "evaluate", "loss")


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
        file = pathlib.Path(folder) / "segmenter.safetensors"
        python = [sys.executable, HERE / "python_segmenter.py", file]
        subprocess.run([*python, "--write"], check=True)
        sides = ([*python, options.threads], [built("segmenter_server"), file, options.threads])
        print(f"{options.threads} threads, {options.dtype}: milliseconds, median of {PAIRS} pairs in turns")
        heading("task")
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
        for name, (left, right) in peaks.items():
            print(f"{name:32} {left / 2**20:7.0f} MiB {right / 2**20:7.0f} MiB at the peak, theirs and ours: {left / right:.2f}")


main()
