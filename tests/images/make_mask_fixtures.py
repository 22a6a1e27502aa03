#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/images/mask_fixtures.json: what pycocotools 2.0.11 (pip install pycocotools) makes of masks and polygons.

  masks      bitmaps, rows as text, with their counts, area, box; a crop, flip and nearest resize of them by NumPy
  polygons   corners, with the counts of what is in them
  pairs      two masks, with union, intersection and both overlaps (with a thing, with a crowd)
  boxes      two boxes, with both overlaps
"""
import json
import pathlib

import numpy as np
from pycocotools import mask as coco

FILE = pathlib.Path(__file__).with_name("mask_fixtures.json")


def encode(bitmap):
    return coco.encode(np.asfortranarray(bitmap.astype(np.uint8)))


def counts(rle):
    return rle["counts"].decode()


def nearest(bitmap, width, height):
    rows = np.arange(height) * bitmap.shape[0] // height
    columns = np.arange(width) * bitmap.shape[1] // width
    return bitmap[rows][:, columns]


def crop(bitmap, left, top, width, height):
    out = np.zeros((height, width), bitmap.dtype)
    for y in range(height):
        for x in range(width):
            if 0 <= y + top < bitmap.shape[0] and 0 <= x + left < bitmap.shape[1]:
                out[y, x] = bitmap[y + top, x + left]
    return out


def bitmaps(numbers):
    yield np.zeros((4, 3))
    yield np.ones((4, 3))
    yield np.ones((1, 1))
    yield np.eye(5)
    whole_columns = np.zeros((6, 7))
    whole_columns[:, 2:4] = 1
    yield whole_columns
    yield np.pad(np.ones((40, 70)), ((100, 60), (3, 200)))  # runs of more than one and two groups of bits
    for height, width, density in ((9, 13, 0.5), (17, 8, 0.1), (8, 30, 0.9), (1, 40, 0.5), (40, 1, 0.3)):
        yield numbers.random((height, width)) < density
    yield np.kron(numbers.random((5, 6)) < 0.5, np.ones((11, 7)))


def polygons(numbers):
    yield 12, 10, [1, 1, 8, 1, 8, 7, 1, 7]
    yield 12, 10, [1.5, 1.5, 8.5, 1.5, 8.5, 7.5, 1.5, 7.5]
    yield 12, 10, [0, 0, 12, 0, 12, 10, 0, 10]
    yield 12, 10, [-3, -4, 15, -2, 16, 14, -5, 13]  # all of it
    yield 12, 10, [3, 3, 3, 3, 3, 3]  # a point
    yield 12, 10, [2, 2, 9, 2, 5, 2]  # a line
    yield 12, 10, [4, 1, 4, 8, 4, 4]
    yield 12, 10, [5, 1, 5, 1, 9, 8, 1, 8, 1, 8]  # corners twice
    yield 12, 10, [1, 1, 10, 8, 10, 1, 1, 8]  # a bow
    yield 12, 10, [0, 3, 6, 3, 6, 10, 0, 10]  # to the last row, from the first column
    yield 12, 10, [-9, -9, -2, -9, -2, -2]  # outside
    yield 12, 10, [20, 2, 30, 2, 30, 9]
    yield 12, 10, [0, 0, 0, 10, 12, 10]
    yield 1, 1, [0, 0, 1, 0, 1, 1, 0, 1]
    for seed in range(60):
        width, height = (int(v) for v in numbers.integers(5, 60, 2))
        corners = int(numbers.integers(3, 14))
        points = numbers.uniform(-0.3, 1.3, (corners, 2)) * (width, height)
        yield width, height, [round(float(v), seed % 3) for v in points.reshape(-1)]
    angles = np.linspace(0, 2 * np.pi, 50, endpoint=False)
    yield 200, 150, [round(float(v), 2) for v in np.stack([100.3 + 80 * np.cos(angles), 70.7 + 60 * np.sin(3 * angles)], 1).reshape(-1)]


def main():
    numbers = np.random.default_rng(0)
    fixtures = {"masks": [], "polygons": [], "pairs": [], "boxes": []}
    for bitmap in bitmaps(numbers):
        bitmap = bitmap.astype(np.uint8)
        height, width = bitmap.shape
        rle = encode(bitmap)
        region = [int(v) for v in (numbers.integers(-4, width), numbers.integers(-4, height), numbers.integers(1, width + 5),
                                   numbers.integers(1, height + 5))]
        size = [int(v) for v in numbers.integers(1, 3 * max(width, height), 2)]
        fixtures["masks"].append({
            "rows": ["".join(map(str, row)) for row in bitmap], "counts": counts(rle), "area": int(coco.area(rle)),
            "box": coco.toBbox(rle).tolist(), "flipped": counts(encode(bitmap[:, ::-1])),
            "region": region, "cropped": counts(encode(crop(bitmap, *region))),
            "size": size, "resized": counts(encode(nearest(bitmap, *size)))})
    for width, height, points in polygons(numbers):
        fixtures["polygons"].append({"width": width, "height": height, "points": points,
                                     "counts": counts(coco.frPyObjects([points], height, width)[0])})
    for _ in range(12):
        height, width = (int(v) for v in numbers.integers(3, 30, 2))
        a, b = (encode(np.kron(numbers.random((height, width)) < numbers.random(), np.ones((2, 3)))) for _ in range(2))
        fixtures["pairs"].append({
            "width": 3 * width, "height": 2 * height, "found": counts(a), "truth": counts(b),
            "union": counts(encode(coco.decode(coco.merge([a, b])))),
            "intersection": counts(encode(coco.decode(coco.merge([a, b], intersect=True)))),
            "thing": float(coco.iou([a], [b], [0])[0, 0]), "crowd": float(coco.iou([a], [b], [1])[0, 0])})
    for _ in range(20):
        a, b = (numbers.uniform(0, 20, 4).round(1).tolist() for _ in range(2))
        fixtures["boxes"].append({"found": a, "truth": b, "thing": float(coco.iou(np.array([a]), np.array([b]), [0])[0, 0]),
                                  "crowd": float(coco.iou(np.array([a]), np.array([b]), [1])[0, 0])})
    with open(FILE, "w") as out:
        json.dump(fixtures, out, separators=(",", ":"))
        out.write("\n")


if __name__ == "__main__":
    main()
