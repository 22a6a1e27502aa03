#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python side of bench/dense/segmentation.py: timm's XCiT under the heads of tests/segmentation. What it is told and answers: see
segmenter_server.cc.

  python_segmenter.py FILE THREADS
  python_segmenter.py FILE --write      writes the file: a state, images, labels
"""
import pathlib
import re
import sys
import time

TESTS = pathlib.Path(__file__).resolve().parents[2] / "tests"
sys.path[:0] = [str(TESTS / "parity"), str(TESTS / "segmentation")]
from environment import import_timm

timm = import_timm()
timm.layers.set_fused_attn(True)
import torch
from safetensors.torch import load_file, save_file

from reference_heads import FeaturePyramid, Segmenter, SemanticFpnHead, losses, resize
from reference_maps import Pyramid, XcitTrunk

SIDE, IMAGES, CLASSES, DIM = 512, 2, 150, 192


def make():
    trunk = XcitTrunk([4, 6, 8, 12], img_size=SIDE, patch_size=16, embed_dim=DIM, depth=12, num_heads=4, eta=1.0)
    return Segmenter(Pyramid(trunk, DIM, 16), FeaturePyramid([DIM] * 4, DIM), SemanticFpnHead([DIM] * 4, [4, 8, 16, 32], CLASSES), None)


def write(file):
    torch.manual_seed(1)
    tensors = {"sd." + name: value for name, value in make().state_dict().items()}
    labels = torch.randint(CLASSES, (IMAGES, SIDE // 16, SIDE // 16)).repeat_interleave(16, 1).repeat_interleave(16, 2)
    labels[:, :20] = 255
    tensors |= {"images": torch.randn(IMAGES, 3, SIDE, SIDE), "labels": labels,
                "logits": torch.randn(IMAGES, CLASSES, SIDE // 4, SIDE // 4)}
    save_file({name: value.detach().clone().contiguous() for name, value in tensors.items()}, file)


class Side:
    def __init__(self, file):
        tensors = load_file(file)
        self.model = make()
        self.model.load_state_dict({name[3:]: value for name, value in tensors.items() if name.startswith("sd.")})
        self.images, self.labels = tensors["images"].clone(), tensors["labels"].clone()
        self.logits = tensors["logits"].clone().requires_grad_()
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-6, weight_decay=0.01)

    def step(self, lowered):
        self.model.train()
        with torch.autocast("cpu", torch.bfloat16, enabled=lowered):
            logits, beside = self.model(self.images)
            loss = losses(logits, beside, self.labels)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()

    @torch.no_grad()
    def evaluate(self, lowered):
        self.model.eval()
        with torch.autocast("cpu", torch.bfloat16, enabled=lowered):
            logits, _ = self.model(self.images)
            return resize(logits, (SIDE, SIDE)).argmax(1)

    def loss(self, lowered):
        logits = self.logits.to(torch.bfloat16) if lowered else self.logits
        with torch.autocast("cpu", torch.bfloat16, enabled=lowered):
            loss = losses(logits, [], self.labels)
        loss.backward()


def held(which):
    with open("/proc/self/status") as status:
        return int(re.search(rf"{which}:\s+(\d+)", status.read())[1]) * 1024


def serve(file, threads):
    torch.set_num_threads(threads)
    side = Side(file)
    tasks = {"step": side.step, "evaluate": side.evaluate, "loss": side.loss}
    before = held("VmRSS")
    for line in sys.stdin:
        if line.strip() == "memory":
            print(held("VmHWM") - before, flush=True)
            continue
        task, dtype, repeats = line.split()
        start = time.perf_counter()
        for _ in range(int(repeats)):
            tasks[task](dtype == "bf16")
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    if sys.argv[2] == "--write":
        write(sys.argv[1])
    else:
        serve(sys.argv[1], int(sys.argv[2]))
