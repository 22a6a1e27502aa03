#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python side of bench/dense/detection.py: torchvision's Mask R-CNN with ResNet-50 and a pyramid, as it is fine-tuned (normalisations
frozen, the stem and the first stage not trained), and torchvision's operators. What it is told and answers: see detector_server.cc.

  torchvision_detector.py FILE THREADS
  torchvision_detector.py FILE --write      writes the file: a random state, images, targets, and inputs of the operators
"""
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "parity"))
from compiled_torchvision import import_torchvision

torchvision = import_torchvision()
import torch
from safetensors.torch import load_file, save_file

HEIGHT, WIDTH, IMAGES, THINGS = 384, 512, 2, 8


def make():
    from torchvision.models.detection.backbone_utils import _resnet_fpn_extractor
    from torchvision.models.detection.mask_rcnn import MaskRCNN
    body = torchvision.models.resnet50(norm_layer=torchvision.ops.misc.FrozenBatchNorm2d)
    return MaskRCNN(_resnet_fpn_extractor(body, 3), num_classes=91)


def random_boxes(count, largest):
    corners = torch.rand(count, 2) * torch.tensor([WIDTH, HEIGHT]) * 0.7
    boxes = torch.cat([corners, corners + 8 + torch.rand(count, 2) * largest], 1)
    return torch.min(boxes, torch.tensor([WIDTH, HEIGHT, WIDTH, HEIGHT]).float())


def write(file):
    torch.manual_seed(1)
    model = make()
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if name.endswith("bn3.weight"):
                value.fill_(0.2)  # of a random state: what residuals add stays small
        model.roi_heads.box_predictor.cls_score.weight.mul_(8)  # there are sure ones
        model.rpn.head.bbox_pred.weight.mul_(0.3)
    tensors = {"sd." + name: value for name, value in model.state_dict().items()}
    tensors["images"] = torch.randn(IMAGES, 3, HEIGHT, WIDTH)
    for i in range(IMAGES):
        tensors |= {f"target.{i}.boxes": random_boxes(THINGS, 200), f"target.{i}.labels": torch.randint(1, 91, (THINGS,)),
                    f"target.{i}.masks": (torch.rand(THINGS, HEIGHT, WIDTH) > 0.5).to(torch.uint8)}
    tensors["maps"] = torch.randn(IMAGES, 256, HEIGHT // 4, WIDTH // 4)
    tensors["rois"] = torch.cat([torch.arange(1024).remainder(IMAGES).sort()[0].float()[:, None], random_boxes(1024, 100)], 1)
    tensors |= {"boxes": random_boxes(2000, 150), "scores": torch.rand(2000), "classes": torch.randint(90, (2000,))}
    save_file({name: value.detach().clone().contiguous() for name, value in tensors.items()}, file)


class Detector:
    def __init__(self, file):
        from torchvision.models.detection.image_list import ImageList
        tensors = load_file(file)
        self.model = make()
        self.model.load_state_dict({name[3:]: value for name, value in tensors.items() if name.startswith("sd.")})
        self.images = ImageList(tensors["images"].clone(), [(HEIGHT, WIDTH)] * IMAGES)
        self.targets = [{part: tensors[f"target.{i}.{part}"].clone() for part in ("boxes", "labels", "masks")} for i in range(IMAGES)]
        # images are of their size and normalised already
        self.model.transform.forward = lambda _, targets=None: (self.images, targets)
        self.optimiser = torch.optim.SGD([p for p in self.model.parameters() if p.requires_grad], lr=1e-6, momentum=0.9)
        self.maps, self.rois = tensors["maps"].clone().requires_grad_(), tensors["rois"].clone()
        self.boxes, self.scores, self.classes = (tensors[name].clone() for name in ("boxes", "scores", "classes"))

    def step(self, lowered):
        self.model.train()
        with torch.autocast("cpu", torch.bfloat16, enabled=lowered):
            loss = sum(self.model(list(self.images.tensors), self.targets).values())
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()

    @torch.no_grad()
    def evaluate(self, lowered):
        self.model.eval()
        with torch.autocast("cpu", torch.bfloat16, enabled=lowered):
            found = self.model(list(self.images.tensors))
        return [image["masks"] >= 0.5 for image in found]

    def align(self, lowered):  # autocast gives the operator float32
        maps = self.maps.to(torch.bfloat16).float() if lowered else self.maps
        torchvision.ops.roi_align(maps, self.rois, 7, 0.25, 2).sum().backward()

    def suppress(self, _):
        torchvision.ops.nms(self.boxes, self.scores, 0.7)

    def suppress_by_class(self, _):
        torchvision.ops.batched_nms(self.boxes, self.scores, self.classes, 0.5)


def held(which):
    with open("/proc/self/status") as status:
        return int(re.search(rf"{which}:\s+(\d+)", status.read())[1]) * 1024


def serve(file, threads):
    torch.set_num_threads(threads)
    detector = Detector(file)
    tasks = {"step": detector.step, "evaluate": detector.evaluate, "roi-align": detector.align, "nms": detector.suppress,
             "batched-nms": detector.suppress_by_class}
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
