#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/scoring/coco_fixtures.json: truths, detections and what pycocotools 2.0.11 (pip install pycocotools) says of them. -1, which it
has where there is no truth, is null."""
import contextlib
import io
import json
import pathlib

import numpy as np
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

FILE = pathlib.Path(__file__).with_name("coco_fixtures.json")
SIDE = 320


def ellipse(box):
    x, y, width, height = box
    rows, columns = np.mgrid[0:SIDE, 0:SIDE]
    inside = ((columns + 0.5 - x - width / 2) / max(width / 2, 1e-9)) ** 2 + ((rows + 0.5 - y - height / 2) / max(height / 2, 1e-9)) ** 2 <= 1
    return coco_mask.encode(np.asfortranarray(inside.astype(np.uint8)))


def thing(regions, box):
    """As it is written: a box or, of an ellipse in it, the counts."""
    if regions == "boxes":
        return {"box": box, "area": box[2] * box[3]}
    rle = ellipse(box)
    return {"box": coco_mask.toBbox(rle).tolist(), "area": float(coco_mask.area(rle)), "counts": rle["counts"].decode()}


def random_box(numbers):
    size = np.exp(numbers.uniform(np.log(6), np.log(250), 2))
    corner = numbers.uniform(0, SIDE - size)
    return [round(float(v), 1) for v in (*corner, *size)]


def near(box, numbers, by):
    return [round(float(v), 1) for v in (box[0] + by * box[2] * numbers.normal(), box[1] + by * box[3] * numbers.normal(),
                                         box[2] * np.exp(by * numbers.normal()), box[3] * np.exp(by * numbers.normal()))]


def mixed(regions, seed, images=14, categories=5, digits=1):
    """Crowds, equal scores, pictures without truths, without detections and without both; a category without truths, one without detections."""
    numbers = np.random.default_rng(seed)
    pictures = []
    for i in range(images):
        truths, found = [], []
        for _ in range(0 if i % 7 == 3 else int(numbers.integers(1, 9))):
            category = int(numbers.integers(0, categories - 1))  # the last one has no truth
            box = random_box(numbers)
            truths.append({"category": category, "crowd": int(numbers.random() < 0.15), **thing(regions, box)})
            for _ in range(int(numbers.integers(0, 4))):
                if category != 1:  # is never found
                    told = category if numbers.random() < 0.85 else categories - 1
                    found.append({"category": told, "score": round(float(numbers.random()), digits),
                                  **thing(regions, near(box, numbers, numbers.choice([0.0, 0.02, 0.06, 0.15])))})
        for _ in range(int(numbers.integers(0, 3))):
            found.append({"category": int(numbers.choice([0, 2, 3, 4])), "score": round(float(numbers.random()), digits),
                          **thing(regions, random_box(numbers))})
        pictures.append({"truths": truths, "found": [] if i % 7 in (3, 5) and i > 6 else found})
    return {"regions": regions, "categories": categories, "pictures": pictures}


def many():
    """More detections than count, one truth that two detections overlap alike, and two truths that one does."""
    numbers = np.random.default_rng(7)
    box, twin = [40.0, 40.0, 60.0, 60.0], [50.0, 40.0, 60.0, 60.0]
    between = [45.0, 40.0, 60.0, 60.0]
    truths = [{"category": 0, "crowd": 0, **thing("boxes", b)} for b in (box, twin)]
    found = [{"category": 0, "score": 0.5, **thing("boxes", between)} for _ in range(3)]
    found += [{"category": 0, "score": round(float(numbers.random()), 2), **thing("boxes", random_box(numbers))} for _ in range(130)]
    late = [250.0, 250.0, 40.0, 40.0]  # is found by the worst detection alone, which does not count
    truths.append({"category": 0, "crowd": 0, **thing("boxes", late)})
    found.append({"category": 0, "score": -1.0, **thing("boxes", late)})
    other = {"truths": [{"category": 0, "crowd": 1, **thing("boxes", [0, 0, 200, 200])}, {"category": 0, "crowd": 0, **thing("boxes", box)}],
             "found": [{"category": 0, "score": 0.5, **thing("boxes", near(box, numbers, 0.3))} for _ in range(12)]}
    return {"regions": "boxes", "categories": 1, "pictures": [{"truths": truths, "found": found}, other]}


def ties():
    """A detection that overlaps two truths alike takes the last, so that the next one finds none; one overlaps exactly half."""
    truths = [[40.0, 40.0, 60.0, 60.0], [60.0, 40.0, 60.0, 60.0], [200.0, 200.0, 10.0, 10.0]]
    found = [([50.0, 40.0, 60.0, 60.0], 0.9), ([70.0, 40.0, 60.0, 60.0], 0.8), ([200.0, 200.0, 10.0, 5.0], 0.7)]
    return {"regions": "boxes", "categories": 1,
            "pictures": [{"truths": [{"category": 0, "crowd": 0, **thing("boxes", b)} for b in truths],
                          "found": [{"category": 0, "score": score, **thing("boxes", b)} for b, score in found]}]}


def nothing_found():
    case = mixed("boxes", 11, images=3)
    for picture in case["pictures"]:
        picture["found"] = []
    case["pictures"][0]["found"] = [{"category": 4, "score": 0.5, **thing("boxes", [1.0, 1.0, 5.0, 5.0])}]  # of no truth's category
    return case


def small_only():
    case = {"regions": "masks", "categories": 2, "pictures": []}
    numbers = np.random.default_rng(3)
    for _ in range(3):
        boxes = [[round(float(v), 1) for v in (*numbers.uniform(0, 200, 2), *numbers.uniform(4, 20, 2))] for _ in range(4)]
        case["pictures"].append({"truths": [{"category": 0, "crowd": 0, **thing("masks", b)} for b in boxes],
                                 "found": [{"category": 0, "score": 0.25 * i, **thing("masks", near(b, numbers, 0.05))} for i, b in enumerate(boxes)]})
    return case


def expected(case):
    images, annotations, results = [], [], []
    for i, picture in enumerate(case["pictures"]):
        images.append({"id": i + 1, "width": SIDE, "height": SIDE})
        for entry in picture["truths"]:
            annotations.append({"id": len(annotations) + 1, "image_id": i + 1, "category_id": entry["category"] + 1, "iscrowd": entry["crowd"],
                                "area": entry["area"], "bbox": entry["box"]})
            if "counts" in entry:
                annotations[-1]["segmentation"] = {"size": [SIDE, SIDE], "counts": entry["counts"]}
        for entry in picture["found"]:
            results.append({"image_id": i + 1, "category_id": entry["category"] + 1, "score": entry["score"]})
            if "counts" in entry:
                results[-1]["segmentation"] = {"size": [SIDE, SIDE], "counts": entry["counts"]}
            else:
                results[-1]["bbox"] = entry["box"]
    truth = COCO()
    truth.dataset = {"info": {}, "images": images, "annotations": annotations,
                     "categories": [{"id": k + 1, "name": str(k)} for k in range(case["categories"])]}
    truth.createIndex()
    evaluation = COCOeval(truth, truth.loadRes(results), "bbox" if case["regions"] == "boxes" else "segm")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    precision, recall, scores = (evaluation.eval[key] for key in ("precision", "recall", "scores"))

    def mean(values):
        values = values[values > -1]
        return float(values.mean()) if values.size else None

    classes = []
    for k in range(case["categories"]):
        has = bool((precision[:, :, k, 0, 2] > -1).any())
        classes.append({"precision": [mean(precision[:, :, k, a, 2]) for a in range(4)],
                        "precision_50": mean(precision[0, :, k, 0, 2]), "precision_75": mean(precision[5, :, k, 0, 2]),
                        "recall": [mean(recall[:, k, a, 2]) for a in range(4)], "recall_of_best": [mean(recall[:, k, 0, m]) for m in range(3)],
                        "curves": [{"precision": precision[t, :, k, 0, 2].tolist(), "score": scores[t, :, k, 0, 2].tolist()}
                                   for t in ((0, 5, 9) if has else ())]})
    return {"stats": [None if value == -1 else float(value) for value in evaluation.stats], "classes": classes}


def main():
    cases = {"boxes": mixed("boxes", 0), "boxes with few scores": mixed("boxes", 1, images=20, digits=0), "masks": mixed("masks", 2, images=10),
             "more than count": many(), "ties": ties(), "nothing found": nothing_found(), "small masks": small_only()}
    with contextlib.redirect_stdout(io.StringIO()):
        for case in cases.values():
            case["expected"] = expected(case)
    with open(FILE, "w") as out:
        json.dump({"side": SIDE, "cases": cases}, out, separators=(",", ":"))
        out.write("\n")


if __name__ == "__main__":
    main()
