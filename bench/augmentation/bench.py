#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each augmentation against Pillow, torchvision and timm: same machine, one thread, one image, in turns. Prints the median of seven pairs, with
the spread, and ours as a multiple of theirs (above 1: ours is faster).

  bench/augmentation/bench.py [--size N] [--only WORD] [--seconds S]     (ABLATE_BENCH: folder of the built augmentation_server)

Both sides take an image and give a new one.
"""
import argparse
import pathlib
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "tests" / "images"), str(HERE.parent)]
import numpy as np
import torch
from PIL import Image

from pairs import PAIRS, compare, conclude, heading
from references import IMAGES
from server import Server, built

OPERATIONS = [
    ("brightness", 1.4), ("contrast", 1.4), ("saturation", 1.4), ("hue", 0.1), ("sharpness", 1.4), ("grayscale",), ("invert",),
    ("solarise", 128), ("solarise_add", 60), ("posterise", 3), ("equalise",), ("auto_contrast",),
    *((operation, *arguments, filter) for operation, *arguments in (("shear_x", 0.27), ("translate", 20.5, 11.25), ("rotate", 27))
      for filter in ("nearest", "bilinear", "bicubic")),
    ("gaussian_blur", 11, 1.0), ("box_gaussian_blur", 1.0), ("flip",), ("crop", 10, 20, 160, 160),
    ("resize", 176, 176, "bilinear"), ("resize", 176, 176, "bicubic"), ("pad", 4, 4, 4, 4),
    ("colour_jitter", 0.3, 0.3, 0.3, 0.0, 1),
]


def picture(size):
    """Smooth, with edges and some noise."""
    y, x = np.mgrid[0:size, 0:size] / size
    waves = np.stack([np.sin(7 * x + 3 * y), np.cos(5 * y - x), np.sin(9 * x * y)], 2) * 90 + 128
    waves[size // 4 : size // 2, size // 3 : size // 2] = (240, 30, 60)
    return Image.fromarray((waves + np.random.default_rng(0).normal(0, 6, waves.shape)).clip(0, 255).astype(np.uint8))


class Ours:
    def __init__(self, image):
        with tempfile.NamedTemporaryFile() as file:
            file.write(image.tobytes())
            file.flush()
            self.server = Server(built("augmentation_server"), file.name, *image.size)
            self(("invert",), 1)  # it has read the file

    def __call__(self, operation, repeats):
        return self.server(" ".join(map(str, (repeats, *operation))))


def theirs(image, operation, repeats):
    function, arguments = IMAGES[operation[0]], operation[1:]
    start = time.perf_counter()
    for _ in range(repeats):
        function(image, *arguments)
    return time.perf_counter() - start


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--size", type=int, default=224)
    arguments.add_argument("--only", default="")
    arguments.add_argument("--seconds", type=float, default=0.05, help="of one measurement")
    options = arguments.parse_args()
    torch.set_num_threads(1)
    image = picture(options.size)
    ours, medians = Ours(image), {}
    print(f"{options.size}×{options.size}: microseconds for an image, median of {PAIRS} pairs in turns")
    heading("operation")
    for operation in OPERATIONS:
        name = " ".join(map(str, operation))
        if options.only in name:
            medians[name] = compare(name, lambda repeats: theirs(image, operation, repeats), lambda repeats: ours(operation, repeats),
                                    options.seconds, unit=1e6)
    conclude("operation", medians)


main()
