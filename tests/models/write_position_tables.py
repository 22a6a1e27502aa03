#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints position_tables.h: tables of positions as timm resizes them. The table that is resized is sin(0.7 i), element by element.

  write_position_tables.py | clang-format > position_tables.h

Needs torch and timm.
"""
import torch

CASES = {"kLarger": (3, 5, 5), "kSmaller": (4, 2, 3)}  # side of the square map, then rows and columns; 1 leading token, width 2


def import_resample():
    """timm needs torchvision; one that was built for another PyTorch lacks operators that nothing here calls."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    for operator in ("nms", "qnms"):
        try:
            library.define(operator + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        except RuntimeError:
            pass  # it is there
    from timm.layers import resample_abs_pos_embed
    return resample_abs_pos_embed, library


def main():
    resample, _ = import_resample()
    print("// SPDX-License-Identifier: Apache-2.0\n// Written by write_position_tables.py.\n#pragma once\n")
    print("#include <vector>\n\nnamespace abl::models {\n")
    for name, (side, rows, columns) in CASES.items():
        count = 2 * (1 + side * side)
        table = torch.sin(0.7 * torch.arange(count, dtype=torch.float64)).float().view(1, -1, 2)
        resized = resample(table, [rows, columns]).flatten().tolist()
        print(f"/// {side} x {side} to {rows} x {columns}.")
        numbers = (f"{x:.9g}" for x in resized)
        literals = ", ".join(x + ("F" if "." in x else ".0F") for x in numbers)
        print(f"inline const std::vector<float> {name}{{{literals}}};\n")
    print("}  // namespace abl::models")


if __name__ == "__main__":
    main()
