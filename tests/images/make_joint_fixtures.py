#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/images/joint_fixtures.json: sizes by the formulas of the papers' programs, written down anew here, and what OpenCV
(pip install opencv-python-headless) makes of colours in HSV.

  by_shorter   facebookresearch/detr, get_size_with_aspect_ratio: width, height, shorter, longest -> width, height
  within       mmcv, rescale_size: width, height, longer, shorter -> width, height
  saturation   colours (red, green, blue), a factor -> colours
  hue          colours, a turn of 180 -> colours
"""
import json
import pathlib

import cv2
import numpy as np

FILE = pathlib.Path(__file__).with_name("joint_fixtures.json")


def by_shorter(width, height, shorter, longest):
    least, most = min(width, height), max(width, height)
    if longest and most / least * shorter > longest:
        shorter = int(round(longest * least / most))
    if least == shorter:
        return [width, height]
    return [shorter, int(shorter * height / width)] if width < height else [int(shorter * width / height), shorter]


def within(width, height, longer, shorter):
    scale = min(longer / max(width, height), shorter / min(width, height))
    return [int(width * scale + 0.5), int(height * scale + 0.5)]


def by_hsv(colours, change):
    hsv = cv2.cvtColor(colours[None], cv2.COLOR_RGB2HSV)
    change(hsv)
    return cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)[0].tolist()


def main():
    numbers = np.random.default_rng(0)
    sides = [[int(v) for v in numbers.integers(20, 900, 2)] for _ in range(40)] + [[640, 480], [480, 640], [500, 500], [1000, 100]]
    fixtures = {"by_shorter": [[*side, shorter, longest, *by_shorter(*side, shorter, longest)]
                               for side in sides for shorter, longest in ((480, 1333), (800, 1333), (500, 0), (67, 90))],
                "within": [[*side, longer, shorter, *within(*side, longer, shorter)]
                           for side in sides for longer, shorter in ((2048, 512), (1030, 257), (100, 90))]}
    colours = np.concatenate([numbers.integers(0, 256, (60, 3)), [[0, 0, 0], [255, 255, 255], [9, 9, 9], [255, 0, 0], [0, 255, 0], [0, 0, 255],
                                                                   [255, 255, 0], [0, 255, 255], [255, 0, 255], [1, 0, 0], [200, 199, 200]]]).astype(np.uint8)
    fixtures["saturation"], fixtures["hue"] = [], []
    for factor in (0.5, 1.0, 1.37):
        def scale(hsv):
            hsv[..., 1] = np.clip(hsv[..., 1].astype(np.float32) * factor, 0, 255).astype(np.uint8)
        fixtures["saturation"].append({"factor": factor, "from": colours.tolist(), "to": by_hsv(colours, scale)})
    for turn in (-18, 0, 17):
        def turned(hsv):
            hsv[..., 0] = (hsv[..., 0].astype(int) + turn) % 180
        fixtures["hue"].append({"turn": turn, "from": colours.tolist(), "to": by_hsv(colours, turned)})
    with open(FILE, "w") as out:
        json.dump(fixtures, out, separators=(",", ":"))
        out.write("\n")


if __name__ == "__main__":
    main()
