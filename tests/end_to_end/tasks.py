# SPDX-License-Identifier: Apache-2.0
"""Rows that do not classify, from a sweep file to its table through the real programs: segmentation, detection, and self-supervision whose
features are judged, with weights that go from one to another."""
import json

from fleet import Fleet, expect, say

SWEEP = """ablate: 1
name: tasks
base:
  model: {family: xcit, dim: 16, depth: 4, heads: 1, patch: 8}
  data: {name: scenes, train_images: 24, val_images: 8, image_size: 64}
  task: {kind: segment, width: 16}
  recipe: {use: demo, epochs: 2, batch: 4, eval_every: 1}
rows:
  - {id: segment, set: {}, from: {row: features, take: last}}
  - id: detect
    set:
      task: {kind: detect, width: 16, anchors: [8, 16, 32, 64, 128], proposals: 40, sampled: 16, box_width: 32, mask_width: 16}
  - id: features
    set:
      data: {name: shapes, train_images: 40, val_images: 20}
      task: {kind: dino, prototypes: 32, width: 32, bottleneck: 16, local_views: 2, local_size: 16}
  - id: linear
    set: {data: {name: shapes, train_images: 40, val_images: 20}, task: {kind: probe-linear}}
    from: {row: features, take: last}
  - id: neighbours
    set: {data: {name: shapes, train_images: 40, val_images: 20}, task: {kind: probe-knn}}
    from: {row: features, take: last}
  - {id: untrained, set: {data: {name: shapes, train_images: 40, val_images: 20}, task: {kind: probe-knn}}}
seeds: 1
table:
  columns:
    - {name: data, setting: data.name}
    - {name: miou, metric: val/miou}
    - {name: box, metric: val/box_ap}
    - {name: knn, metric: val/knn20}
    - {name: top1, metric: val/top1}
    - {name: params, count: params.all}
"""
MEASURED = {"segment": {"miou"}, "detect": {"box"}, "features": {"knn"}, "linear": {"knn", "top1"}, "neighbours": {"knn"}, "untrained": {"knn"}}


def main():
    with Fleet("tasks") as fleet:
        file = fleet.home / "tasks.yaml"
        file.write_text(SWEEP)
        plan = json.loads(fleet.ablate("plan", file, "--json").stdout)
        expect(all(row["counts"]["flops.step"] > 0 for row in plan["rows"]), "what a step of each task computes is known before it runs")
        fleet.start_scheduler()
        fleet.start_worker("one", "--slots", 2, "--threads", 1)
        say("submits a row of each task")
        fleet.ablate("submit", file, "--watch")
        table = json.loads(fleet.ablate("table", "tasks", "--json").stdout)
        names = [column["name"] for column in table["columns"]]
        filled = {row["id"]: {name for name, cell in zip(names, row["cells"]) if "mean" in cell} - {"params", "data"} for row in table["rows"]}
        expect(filled == MEASURED, f"every row has the metrics of its task and no others: {filled}")
        value = {row["id"]: {name: cell.get("mean") for name, cell in zip(names, row["cells"])} for row in table["rows"]}
        expect(value["linear"]["knn"] == value["neighbours"]["knn"], "both probes see the same features")
        failed = [line for line in fleet.ablate("show", "tasks").stdout.splitlines() if " failed " in line]
        expect(not failed, f"nothing failed: {failed}")


main()
