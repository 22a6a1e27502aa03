#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/images/fixtures.bin: what Pillow, torchvision and timm make of a few small pictures, and draw from given streams.
Needs the packages of deploy/python-tests.txt. The file is a sequence of records, each a line of text (UTF-8, ended by a line feed),
some followed by bytes:

  picture NAME WIDTH HEIGHT                                 and the picture, [height, width, 3]
  image OPERATION PICTURE BOUND WIDTH HEIGHT ARGUMENT…      and what the operation makes of it; no byte may differ by more than BOUND
  numbers POLICY ARGUMENT… = NUMBER…                        what the policy draws
"""
import pathlib

import numpy as np
from PIL import Image

from references import IMAGES, NUMBERS

FILE = pathlib.Path(__file__).with_name("fixtures.bin")
INTERPOLATIONS = ("nearest", "bilinear", "bicubic")


def pictures():
    numbers = np.random.default_rng(0)
    y, x = np.mgrid[0:29, 0:37]
    scene = np.stack([6 * x + 20, 8 * y + 5, 3 * x + 4 * y], 2) + numbers.integers(-12, 13, (29, 37, 3))
    scene[8:20, 5:15] = (230, 40, 30)
    scene[12:27, 20:33] = scene[12:27, 20:33, ::-1] // 2
    return {
        "scene": scene.clip(0, 255),
        "noise": numbers.integers(0, 256, (24, 24, 3)),
        "tile": numbers.integers(0, 256, (16, 16, 3)),
        "dim": numbers.integers(60, 140, (16, 16, 3)) + (0, 20, 40),
        "pastel": numbers.integers(0, 250, (24, 24, 1)) + numbers.integers(0, 6, (24, 24, 3)),  # hues of little saturation
        "plain": np.full((6, 5, 3), (200, 30, 90)),
        "pixel": np.array([[[17, 200, 131]]]),
        "line": numbers.integers(0, 256, (1, 9, 3)),
    }


def images():
    """Operation, picture, arguments."""
    for picture in ("scene", "noise", "plain", "pixel", "line"):
        for operation in ("grayscale", "invert", "equalise", "auto_contrast", "flip"):
            yield operation, picture
        for operation in ("brightness", "contrast", "saturation", "sharpness"):
            for factor in (0.37, 1.9) if picture == "scene" else (0.0, 1.0, 0.1, 3.3):
                yield operation, picture, factor
        for turn in (0.0, 0.3, -0.5):
            yield "hue", picture, turn
        for degrees in (90, -37.5):
            yield "rotate", picture, degrees, "bicubic"
        yield "box_gaussian_blur", picture, 1.3
    for operation in ("equalise", "auto_contrast"):
        yield operation, "dim"
    for turn in (0.0, 0.11, 0.5):
        yield "hue", "pastel", turn
    for threshold in (0, 1, 128, 255, 256):
        yield "solarise", "noise", threshold
    for add in (0, 60, 128):
        yield "solarise_add", "noise", add
    for bits in (0, 1, 4, 8):
        yield "posterise", "noise", bits
    for interpolation in INTERPOLATIONS:
        yield "shear_x", "scene", 0.27, interpolation
        yield "shear_x", "noise", -0.3, interpolation
        yield "shear_y", "noise", 0.3, interpolation
        yield "translate", "noise", 5, -3, interpolation
        yield "translate", "noise", -2.75, 1.5, interpolation
        yield "translate_x", "noise", 0.405, interpolation
        yield "translate_y", "noise", -0.405, interpolation
        yield "affine", "noise", 0.7, 0.2, -1.5, -0.1, 1.3, 2.25, interpolation
        yield "affine", "noise", 0.4, 0, 3.0, 0, 2.1, -9, interpolation
        for picture, degrees in (("scene", 27), ("noise", -30), ("noise", 270.5)):
            yield "rotate", picture, degrees, interpolation
    yield "affine", "noise", 1, 0.5, 40_000.0, 0, 1, 0, "nearest"
    for picture, degrees in (("scene", 180), ("scene", 90), ("noise", 90), ("noise", 270), ("noise", 0), ("noise", 360), ("noise", 12)):
        yield "rotate", picture, degrees, "bilinear"
    for radius in (0, 0.1, 0.5, 2.0, 20.0):
        yield "box_gaussian_blur", "scene" if radius == 2 else "noise", radius
    for picture, kernel, sigma in (("noise", 11, 0.1), ("noise", 11, 1.1), ("scene", 11, 2.0), ("noise", 11, 1.5), ("noise", 23, 4.0),
                                   ("noise", 3, 0.8), ("plain", 5, 1.0), ("pixel", 1, 1.0)):
        yield "gaussian_blur", picture, kernel, sigma
    for box in ((3, 4, 20, 10), (-5, -6, 24, 24), (10, 20, 30, 30), (50, 0, 4, 4)):
        yield "crop", "scene", *box
    for interpolation in INTERPOLATIONS[1:]:
        for picture, *size in (("scene", 17, 13), ("scene", 90, 61), ("scene", 37, 8), ("noise", 24, 24), ("noise", 23, 25), ("noise", 5, 3),
                               ("noise", 1, 1), ("line", 4, 6), ("pixel", 5, 4), ("tile", 22, 64)):
            yield "resize", picture, *size, interpolation
        for box in ((0.5, 0.25, 30.25, 20.125), (3.75, 5, 12, 28.5)):
            yield "resize_box", "scene", 11, 14, *box, interpolation
        for side, size in ((20, 16), (29, 29), (40, 31), (9, 2)):
            yield "centre", "scene", side, size, interpolation
        yield "centre", "line", 3, 3, interpolation
    yield "pad", "noise", 1, 2, 3, 4
    yield "pad_reflected", "noise", 4, 4, 4, 4
    yield "pad_reflected", "tile", 0, 5, 15, 1
    for seed in range(8):
        yield "colour_jitter", "tile", 0.4, 0.4, 0.4, 0.1 * (seed % 2), seed
    for seed in range(6):
        yield "three_augment", "tile", "msf", seed
        yield "three_augment", "tile", "deit", seed
    for seed in range(40):
        yield "rand_augment", "tile", "rand-m9-p1-n1-inc1", seed
        yield "rand_augment", "tile", "rand-m7-mstd2-p1-n1", seed
    for seed in range(16):
        yield "rand_augment", "dim", "rand-m9-mstd0.5-inc1", seed
        yield "rand_augment", "dim", "rand-m12-mstd101-mmax20-n3", seed
    for seed in range(160):  # every operation, most of them at ten strengths
        yield "trivial_augment", "tile", INTERPOLATIONS[seed % 3], seed


def numbers():
    for seed in range(40):
        yield "resized_crop", 224, 180, 0.08, 1.0, 3 / 4, 4 / 3, seed
        yield "erasure", 224, 224, 0.6, seed
        yield "mixing", 224, 160, 0.8, 1.0, 0.9, 0.5, seed
    for seed in range(10):
        yield "resized_crop", 500, 30, 0.8, 1.0, 3 / 4, 4 / 3, seed  # never fits
        yield "resized_crop", 30, 500, 0.8, 1.0, 3 / 4, 4 / 3, seed
        yield "erasure", 9, 5, 1.0, seed
        yield "mixing", 32, 32, 0.2, 0.0, 1.0, 0.5, seed
        yield "mixing", 33, 32, 0.0, 2.5, 1.0, 0.5, seed


def bound(operation, arguments):
    return 1 if operation == "gaussian_blur" or (operation, arguments[:1]) == ("three_augment", ("msf",)) else 0


def words(values):
    return " ".join(value if isinstance(value, str) else repr(value.item() if hasattr(value, "item") else value) for value in values)


def main():
    made = {name: Image.fromarray(np.ascontiguousarray(pixels, np.uint8)) for name, pixels in pictures().items()}
    with open(FILE, "wb") as out:
        def record(line, image=None):
            out.write(line.encode() + b"\n" + (image.tobytes() if image else b""))

        for name, picture in made.items():
            record(words(("picture", name, *picture.size)), picture)
        for operation, picture, *arguments in images():
            result = IMAGES[operation](made[picture].copy(), *arguments)
            assert result.mode == "RGB"
            record(words(("image", operation, picture, bound(operation, tuple(arguments)), *result.size, *arguments)), result)
        for policy, *arguments in numbers():
            record(words(("numbers", policy, *arguments, "=", *NUMBERS[policy](*arguments))))
    print(f"{FILE}: {FILE.stat().st_size} bytes")


main()
