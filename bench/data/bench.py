#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decoding, random resized crop and flip of photographs, as training does it, against torchvision's DataLoader (Pillow) and DALI on the CPU:
the same images, as many workers, in turns. Prints images/s per core, the median of seven turns, and ours as a multiple of each other's. Ours
reads the packed file that `ablate data pack` makes of the folder once, to the same pixels; the others, and "the files", read the folder.

  bench/data/bench.py --images imagenet-sample.tar.gz [--dali PYTHON] [--workers N] [--size 224] [--interpolation bilinear] [--seconds S]
                       [--before FOLDER]

--images (or ABLATE_TEST_DATA, a folder with that file): a folder of CLASS/*.jpg, or an archive of one. --dali: the Python of an environment
with `pip install nvidia-dali-cuda120`; without it DALI is left out. --before: the loader_server of another
build, in its folder bench/, as one side more. ABLATE_BENCH: folder of the built loader_server.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from pairs import PAIRS
from server import Server, built, trainer

BATCH = 64


def lay_out(images, folder):
    """As a data set of two splits, of which the second is not used."""
    source = pathlib.Path(images)
    if not source.is_dir():
        with tarfile.open(source) as archive:
            archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # Debian 12's has none
        source, = pathlib.Path(folder).iterdir()
    root = pathlib.Path(folder) / "data"
    root.mkdir()
    for split in ("train", "val"):
        (root / split).symlink_to(source.resolve())
    return root


def sides_of(root, options):
    program = built("loader_server")
    arguments = root, options.size, options.workers, BATCH, options.interpolation
    sides = {"torchvision, Pillow": Server(sys.executable, HERE / "torchvision_server.py", *arguments)}
    if options.dali:
        sides["DALI"] = Server(options.dali, HERE / "dali_server.py", *arguments)
    packed = root.with_suffix(".abldata")
    if options.before:
        before = root.parent / "before.abldata"  # formats change
        subprocess.run([trainer(options.before), "data", "pack", "--root", root, "--output", before], check=True, stdout=sys.stderr)
        sides["before"] = Server(built("loader_server", options.before), before, *arguments[1:], "full")
        sides["before, the files"] = Server(built("loader_server", options.before), *arguments, "full")
    subprocess.run([trainer(), "data", "pack", "--root", root, "--output", packed], check=True, stdout=sys.stderr)
    sides["ours"] = Server(program, packed, *arguments[1:], "full")
    sides["ours, the files"] = Server(program, *arguments, "full")
    sides["ours, reduced scale"] = Server(program, packed, *arguments[1:], "reduced")
    return sides


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    folder = os.environ.get("ABLATE_TEST_DATA")
    arguments.add_argument("--images", default=folder and f"{folder}/imagenet-sample.tar.gz", required=not folder)
    arguments.add_argument("--dali", help="Python that has nvidia.dali")
    arguments.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    arguments.add_argument("--size", type=int, default=224)
    arguments.add_argument("--interpolation", choices=("bilinear", "bicubic"), default="bilinear")
    arguments.add_argument("--before", type=pathlib.Path, metavar="FOLDER", help="bench/ of another build")
    arguments.add_argument("--seconds", type=float, default=4, help="of one measurement")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sides = sides_of(lay_out(options.images, folder), options)
        batches = {name: max(2, int(options.seconds / (min(side(2) for _ in range(2)) / 2))) for name, side in sides.items()}
        turns = [{name: batches[name] * BATCH / side(batches[name]) / options.workers for name, side in sides.items()} for _ in range(PAIRS)]
        for side in sides.values():
            side.process.stdin.close()
            side.process.wait()
    print(f"{options.size} pixels, {options.interpolation}, workers: {options.workers}; images/s per core, median of {PAIRS} turns")
    print(f"{'':24} {'images/s':>9} {'ours is … times as fast':>26}   spread")
    for name in sides:
        ratios = sorted(turn["ours"] / turn[name] for turn in turns)
        print(f"{name:24} {statistics.median(turn[name] for turn in turns):9.0f} {statistics.median(ratios):26.2f}   {ratios[0]:.2f} to {ratios[-1]:.2f}")
    if not options.dali:
        print("DALI was not measured: no --dali")
    print("FFCV was not measured: PyPI has its sources alone, which ask for OpenCV's development files")


main()
