#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python packages that ground truth needs. Run as a program it says what is missing, and ends with 1 where something is."""
import importlib.metadata
import os
import sys

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "deploy", "python-tests.txt")


def missing():
    """Packages of the list that are not there. timm alone must be of its version: parameters are named as there."""
    found = [] if version("torch") else ["torch"]
    with open(LIST) as text:
        for line in text:
            if line.strip() and not line.startswith("#"):
                package, pinned = line.split()[0].split("==")
                if not version(package) or (package == "timm" and version(package) != pinned):
                    found.append(f"{package}=={pinned}")
    return found


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def import_timm():
    """timm, with its attention written out. It imports torchvision, which registers shapes for two of its compiled operators
    whether it could load them or not: they may belong to another build of torch."""
    import torch
    library = torch.library.Library("torchvision", "FRAGMENT")
    for operator in ("nms", "qnms"):
        try:
            library.define(operator + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        except RuntimeError:  # it is there
            pass
    import_timm.keep = library  # its operators go when it goes
    import timm
    timm.layers.set_fused_attn(False)
    return timm


def demand():
    """Ends the program where packages are missing."""
    if missing():
        sys.exit(f"{sys.executable} lacks {', '.join(missing())}: run deploy/setup.sh --tests")


def prepare():
    """What a comparison needs: the packages, timm, and one thread, for the last bits depend on it."""
    demand()
    import torch
    torch.set_num_threads(1)
    import_timm()


if __name__ == "__main__":
    demand()
