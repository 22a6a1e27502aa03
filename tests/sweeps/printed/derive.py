#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cells.tsv: what the papers print, for each row of the sweep files, from transcripts of the papers' tables.

    derive.py FOLDER > cells.tsv

FOLDER has a YAML file for each table, with columns (name, kind) and rows (id, label, values, emphasis, certain). They are
no part of this repository; cells.tsv is. What a sweep shows as a setting and the paper in other words (which letters share a
matrix, say) is left out: KEPT names the columns of such tables that stand as they are printed.
"""
import pathlib
import sys

import yaml

PAPERS = {"msf": "msf", "manifold-key": "manifold-key", "sne": "sne", "xcit": "xcit"}
# table -> its columns -> those of the sweep; where a table is not named, its columns bear their own names
KEPT = {
    "msf/table-1": {"acc": "acc", "params": "params"},
    "msf/table-2": {"acc": "acc", "params": "params"},
    "msf/table-3": {"test_acc": "test_acc", "train_loss": "train_loss", "train_acc": "train_acc"},
    "msf/table-4": {"acc": "acc", "params": "params"},
    "msf/supplement-table-C": {"acc": "acc"},
    "sne/figure-3": {"top1": "top1"},
    "sne/figure-6": {"top1": "top1"},
}
DATA = {"cifar10": "cifar10", "cifar100": "cifar100", "cars": "stanford-cars", "stl10": "stl10"}
YEARS = {"inat2018": "inaturalist-2018", "inat2019": "inaturalist-2019"}
CNN = ("resnet", "resnext")
HEADS = {"fpn": "head=semantic-fpn,use=xcit-sem-fpn", "upernet": "head=uper-net,use=xcit-upernet"}


def places(table, row, column):
    """Where a cell of the paper stands in the sweep: (row, column), several times perhaps."""
    if table == "msf/table-6":
        if column.startswith("acc_"):
            return [(f"{row},epochs={column[4:-2]}", "acc")]
        name = "flops_cnn" if column == "flops" and row.startswith(CNN) else column
        return [(f"{row},epochs={epochs}", name) for epochs in (100, 300)]
    if table == "msf/table-7":
        if column in YEARS:
            return [(f"{row},name={YEARS[column]}", "acc")]
        return [(f"{row},name={year}", column) for year in YEARS.values()]
    if table == "msf/table-7-ade20k":  # a column of table-7, trained by itself
        return [(row, "miou")] if column == "ade_miou" else []
    if table == "xcit/table-6":
        head, name = column.split("_")
        return [(f"{row},{HEADS[head]}", name)]
    if table == "sne/table-4":
        data = column.removesuffix("_delta")
        if data in DATA:
            return [(f"{row},name={DATA[data]}", "top1_delta" if column.endswith("_delta") else "top1")]
        return [(f"{row},name={name}", column) for name in DATA.values()]
    if table == "sne/table-1":
        size, column = ("xcit-n12", column[5:]) if column.startswith("nano_") else ("xcit-t12", column[5:])
        kinds = {"xcit": [""], "f-sne-c": [f"-f-sne-{c}" for c in (8, 16, 32, 64)]}.get(row, [f"-{row}"])
        return [(size + kind, column) for kind in kinds]
    if table == "xcit/table-1":
        of = {"gflops_224_16": ("", "gflops"), "gflops_384_8": ("-p8-384-distilled", "gflops_384"), "top1_224_16": ("", "top1"),
              "top1_224_16_distilled": ("-distilled", "top1"), "top1_384_8_distilled_finetuned": ("-p8-384-distilled", "top1")}
        suffix, name = of.get(column, ("", column))
        return [(row + suffix, name)]
    if table == "msf/table-5" and row.startswith("swin") and column != "width_d":
        return [(row, {"layer": "layer_stages", "head_h": "head_h_stages", "mlp": "mlp_factor"}[column])]
    if table in KEPT:
        return [(row, KEPT[table][column])] if column in KEPT[table] else []
    return [(row, column)]


def cells(table, transcript):
    if table == "msf/supplement-table-Aa":  # a line for each parameter, of two trainings
        yield from transposed(transcript)
        return
    for row in transcript["rows"]:
        for column, printed in row["values"].items():
            if printed is None:
                printed = row.get("printed", {}).get(column)
            if printed is None or not any(letter.isalnum() for letter in printed):
                continue
            mark = row.get("emphasis", {}).get(column, "")
            if not row.get("certain", {}).get(column, True):
                mark = "doubtful"
            for place in places(table, row["id"], column):
                yield (*place, printed, mark)


def transposed(transcript):
    for row in transcript["rows"]:
        for training, part in (("t-100", 0), ("t-300", 1)):
            printed = str(row["values"]["value"])
            if row["id"] in ("epochs", "warmup_epochs"):
                halves = [half.strip() for half in printed.replace("and", ",").replace("/", ",").split(",")]
                printed = halves[part] if len(halves) == 2 else printed
            yield training, row["id"], printed, "doubtful" if not row.get("certain", {}).get("value", True) else ""


def main():
    print("# SPDX-License-Identifier: Apache-2.0")
    print("# What the papers print, cell by cell, where the sweep file has a column for it; written by derive.py. Tab-separated.")
    print("# file\trow\tcolumn\tprinted\tmark")
    for file in sorted(pathlib.Path(sys.argv[1]).glob("*.yaml")):
        paper = next(paper for paper in PAPERS if file.stem.startswith(paper))
        table = f"{paper}/{file.stem.removeprefix(paper)[1:]}"
        for name in (table, "msf/table-7-ade20k") if table == "msf/table-7" else (table,):
            for row, column, printed, mark in cells(name, yaml.safe_load(file.read_text())):
                print(f"{name}\t{row}\t{column}\t{printed}\t{mark}")


main()
