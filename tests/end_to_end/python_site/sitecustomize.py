# SPDX-License-Identifier: Apache-2.0
"""For scripts of tests that import torchvision beside a PyTorch of another build (that of a CPU, say): it registers shapes for two of its
compiled operators whether it could load them or not, so they are declared before."""
import glob
import importlib.machinery
import os
import sys


class BeforeTorchvision:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "torchvision":
            return None
        sys.meta_path.remove(BeforeTorchvision)
        found = importlib.machinery.PathFinder.find_spec(name)
        if found is not None and found.origin:
            declare(os.path.dirname(found.origin))
        return None


def declare(folder):
    import torch
    try:
        torch.ops.load_library(glob.glob(os.path.join(folder, "_C*.so"))[0])
    except (OSError, RuntimeError, IndexError):
        library = BeforeTorchvision.library = torch.library.Library("torchvision", "FRAGMENT")
        for operator in ("nms", "qnms"):
            library.define(operator + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


sys.meta_path.insert(0, BeforeTorchvision)
