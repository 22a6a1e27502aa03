# SPDX-License-Identifier: Apache-2.0
"""Every params and FLOPs cell that the papers print of models that are here, as 'ablate papers' shows it: equal to the print, but for those
that tests/counting/cells.tsv explains."""
import decimal
import json
import os
import pathlib
import subprocess
import sys
import tempfile

KNOWN = {  # table -> rows, without the levels of factors, and columns that do not follow; the reasons are in tests/counting/cells.tsv
    "manifold-key/table-1": {("swin-t", "flops"), ("swin-t-spatialk", "flops"), ("swin-t-kua", "flops"), ("swin-t-simplek", "flops"),
                             ("swin-t-vanillak", "flops")},
    "msf/table-6": {("resnet-101", "flops_cnn"), ("resnext-101-32x8d", "flops_cnn"), ("vit-ti-msf-g2", "params")},
    "sne/table-2": {("xcit-n12-f-sne-64", "params"), ("xcit-t12-f-sne-64", "params")},
    "sne/table-3": {("xcit-n12-f-sne-64", "params")},
    "sne/table-5": {("shared", "params")},
    "xcit/table-3": {("dino-vit-b-p16", "params"), ("dino-vit-b-p16", "flops"), ("dino-vit-b-p8", "params")},
}
UNITS = {"M": 10**6, "G": 10**9}


def papers(home, *arguments):
    program = pathlib.Path(os.environ["ABLATE_BIN"]) / "ablate"
    done = subprocess.run([program, "papers", *arguments, "--json", "--home", home], capture_output=True, text=True, check=True, timeout=300)
    return json.loads(done.stdout)


def as_printed(mean, unit, like, cut):
    digits = len(like.partition(".")[2])
    value = decimal.Decimal(repr(float(mean))) / UNITS.get(unit, 1)
    return str(value.quantize(decimal.Decimal(1).scaleb(-digits), decimal.ROUND_DOWN if cut else decimal.ROUND_HALF_UP))


def main():
    equal, differing, dense = 0, {}, 0
    with tempfile.TemporaryDirectory() as home:
        for listed in papers(home)["tables"]:
            if not listed["free"]:
                continue
            table = papers(home, listed["name"])["table"]
            for row in table["rows"]:
                for column, cell in zip(table["columns"], row["cells"]):
                    if column["kind"] != "KIND_COUNT" or not cell["paper"] or "mean" not in cell:
                        continue
                    if as_printed(cell["mean"], column["unit"], cell["paper"], column["cut"]) == cell["paper"]:
                        equal += 1
                        dense += listed["name"] in ("xcit/table-5", "xcit/table-6")
                    else:
                        differing.setdefault(listed["name"], set()).add((row["id"].partition(",")[0], column["name"]))
    print(f"{equal} cells equal the print, {dense} of them of detectors and segmenters; others: {differing}")
    if differing != KNOWN or equal != 257 or dense != 24:
        sys.exit("expected 257 cells, 24 of them of detectors and segmenters, and no others than those that are known")


main()
