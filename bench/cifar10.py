#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small ViT on all of CIFAR-10 (50,000 + 10,000 JPEG files) on two threads: at least 45 % test accuracy in ten minutes of training.

  bench/cifar10.py [ARCHIVE]      # default: ../shared/data/cifar10-jpeg.tar.gz, or in $ABLATE_TEST_DATA
"""
import os
import pathlib
import sys
import tarfile
import tempfile

from trainer_run import ROOT, train

folder = pathlib.Path(os.environ.get("ABLATE_TEST_DATA", ROOT.parent / "shared/data"))
archive = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else folder / "cifar10-jpeg.tar.gz"
if not archive.exists():
    sys.exit(f"no {archive}: name the archive, or set ABLATE_TEST_DATA to its folder")
with tempfile.TemporaryDirectory(prefix="ablate-cifar10-") as root:
    print("unpacking …", file=sys.stderr, flush=True)
    with tarfile.open(archive) as tar:
        tar.extractall(root, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(root)
    config = {"model": {"family": "simple-vit", "dim": 96, "depth": 4, "heads": 3, "dim_head": 32, "patch": 4,
                        "attention": {"kernel": "gaussian", "probe": "inside"}},
              "data": {"name": "cifar10"}, "recipe": {"use": "cifar-lite", "epochs": 5, "batch": 128, "lr": 0.002, "eval_every": 1}, "seed": 0}
    run = train(config, threads=2, data_root=pathlib.Path(root) / "cifar10", label="CIFAR-10:")
print(f"CIFAR-10, MSF simple ViT 4 × 96, 5 epochs: val/top1 {run['top1']:.2f} %, {run['wall_s']:.0f} s in all, "
      f"{run['cpu_s']:.0f} CPU-s, {run['images_per_s']:.0f} images/s in training")
sys.exit(not (run["top1"] >= 45 and run["wall_s"] <= 600))
