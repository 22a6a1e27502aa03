#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what torchvision makes of regions, boxes and Mask R-CNN, for the tests of models/dense: safetensors files.

  write_detection.py --out DIR

regions.safetensors    roi_align: for each case its maps, rois and gradient of the result, the result and the gradient of the maps
boxes.safetensors      nms and batched_nms: for each case boxes, scores, classes, and which stay
<model>.safetensors    a small Mask R-CNN in float64: its state (sd.), images, targets, and all that it makes of them
names.json             names and shapes of the states of the models of the usual size

Weights and inputs are random and depend only on SEED. Boxes for the losses are not drawn, but number 7919 i modulo their count. Nothing is
written where the same versions of this folder, torch and torchvision have written.
"""
import argparse
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from environment import demand

SEED = 3


def region_cases(torch):
    """(name, maps, rois, scale, size, samples, aligned)."""
    def noise(*shape, dtype=torch.float32):
        return torch.randn(*shape, dtype=dtype)

    def rois(count, images, side, dtype=torch.float32):
        corners = torch.rand(count, 4, dtype=dtype) * side * 1.4 - 0.2 * side  # some leave the image
        corners[:, 2:] = corners[:, :2] + torch.rand(count, 2, dtype=dtype) * side * 0.6
        return torch.cat([torch.randint(images, (count, 1)).to(dtype), corners], 1)

    nasty = torch.tensor([[0, 3, 3, 3, 3], [0, 5, 2, 5, 9], [0, -40, -40, -30, -30], [0, 60, 60, 90, 90], [0, -1, -1, 33, 33],
                          [1, 9, 8, 4, 3], [1, -0.5, -0.5, 0.5, 0.5], [1, 31.5, 31.5, 32.5, 32.5], [0, 0, 0, 32, 32], [0, 16, 0, 16.001, 32]])
    for samples in (2, 3, 0):
        for aligned in (False, True):
            ending = f"{samples}_{'aligned' if aligned else 'plain'}"
            yield f"random_{ending}", noise(3, 70, 13, 17), rois(20, 3, 64), 0.25, (7, 5), samples, aligned
            yield f"nasty_{ending}", noise(2, 3, 16, 16), nasty, 0.5, (3, 4), samples, aligned
            yield f"double_{ending}", noise(2, 5, 9, 8, dtype=torch.float64), rois(9, 2, 64, torch.float64), 0.125, (2, 2), samples, aligned
            yield f"one_place_{ending}", noise(1, 130, 1, 1), rois(5, 1, 8), 0.2, (2, 2), samples, aligned
            yield f"none_{ending}", noise(2, 4, 5, 5), nasty[:0], 1.0, (7, 7), samples, aligned
    yield "large_bins", noise(1, 2, 50, 40), torch.tensor([[0, 1.0, 2.0, 39.0, 47.5], [0, -3, 10, 55, 11]]), 1.0, (4, 3), 0, False


def write_regions(torch, ops, out):
    from safetensors.torch import save_file
    torch.manual_seed(SEED)
    tensors, cases = {}, []
    for name, maps, rois, scale, size, samples, aligned in region_cases(torch):
        maps.requires_grad_()
        pooled = ops.roi_align(maps, rois.to(maps.dtype), size, scale, samples or -1, aligned)
        given = torch.randn_like(pooled)
        pooled.backward(given)
        tensors |= {f"{name}.maps": maps.detach(), f"{name}.rois": rois.to(maps.dtype), f"{name}.given": given, f"{name}.pooled": pooled.detach(),
                    f"{name}.gradient": maps.grad}
        cases.append(dict(name=name, scale=scale, height=size[0], width=size[1], samples=samples, aligned=aligned))
    save_file({name: value.clone().contiguous() for name, value in tensors.items()}, out, {"ablate": json.dumps(cases)})


def box_cases(torch):
    """(name, boxes, scores, classes)."""
    def boxes(count, side, dtype=torch.float32):
        corners = torch.rand(count, 2, dtype=dtype) * side
        return torch.cat([corners, corners + torch.rand(count, 2, dtype=dtype) * side * 0.4], 1)

    few = torch.randint(5, (60,))
    yield "random", boxes(60, 50), torch.rand(60), few
    yield "double", boxes(60, 50, torch.float64), torch.rand(60, dtype=torch.float64), few
    yield "ties", boxes(60, 30).repeat(2, 1), torch.randint(4, (120,)) / 4.0, few.repeat(2)
    yield "whole_numbers", boxes(200, 12).round(), torch.randint(3, (200,)) / 2.0, torch.randint(2, (200,))
    yield "moved_apart", boxes(990, 1300), torch.rand(990), torch.randint(91, (990,))
    yield "by_class", boxes(1500, 300), torch.rand(1500), torch.randint(4, (1500,))
    yield "by_class_ties", boxes(750, 60).round().repeat(2, 1), torch.randint(9, (1500,)) / 8.0, torch.randint(3, (1500,))
    yield "below_zero", boxes(80, 40) - 30, torch.rand(80), torch.randint(6, (80,))
    yield "empty_boxes", torch.tensor([[1, 1, 1, 1], [1, 1, 1, 1], [2, 2, 1, 1], [0, 0, 4, 4], [0, 0, 4, 0], [0, 0, 4, 4.0]]), torch.tensor(
        [0.5, 0.5, 0.9, 0.1, 0.2, 0.1]), torch.tensor([0, 0, 0, 1, 1, 1])
    yield "one", boxes(1, 9), torch.rand(1), torch.tensor([3])
    yield "none", boxes(0, 9), torch.rand(0), torch.zeros(0, dtype=torch.int64)


def write_boxes(torch, ops, out):
    from safetensors.torch import save_file
    torch.manual_seed(SEED)
    tensors, cases = {}, []
    for name, boxes, scores, classes in box_cases(torch):
        cases.append(name)
        tensors |= {f"{name}.boxes": boxes, f"{name}.scores": scores, f"{name}.classes": classes}
        for threshold in (0, 0.3, 0.5, 0.7, 1):
            tensors[f"{name}.stay.{threshold:.1f}"] = ops.nms(boxes, scores, threshold)
            tensors[f"{name}.stay_of_class.{threshold:.1f}"] = ops.batched_nms(boxes, scores, classes, threshold)
    save_file({name: value.clone().contiguous() for name, value in tensors.items()}, out, {"ablate": json.dumps(cases)})


class Recorded:
    """Calls a method in its place and keeps what it returned."""

    def __init__(self, owner, name):
        self.method, self.returned = getattr(owner, name), []
        setattr(owner, name, self)

    def __call__(self, *arguments, **named):
        self.returned.append(self.method(*arguments, **named))
        return self.returned[-1]


def small_mask_rcnn(torch, torchvision, with_norms):
    from torchvision.models.detection.backbone_utils import BackboneWithFPN
    from torchvision.models.detection.faster_rcnn import FastRCNNConvFCHead, FastRCNNPredictor, TwoMLPHead, _default_anchorgen
    from torchvision.models.detection.mask_rcnn import MaskRCNN, MaskRCNNHeads, MaskRCNNPredictor
    from torchvision.models.detection.rpn import RPNHead
    from torchvision.models.resnet import Bottleneck, ResNet
    from torchvision.ops.misc import FrozenBatchNorm2d
    norm = torch.nn.BatchNorm2d if with_norms else None
    body = ResNet(Bottleneck, [1, 1, 1, 1], width_per_group=8, norm_layer=norm or FrozenBatchNorm2d)
    backbone = BackboneWithFPN(body, {f"layer{i + 1}": str(i) for i in range(4)}, [256, 512, 1024, 2048], 16, norm_layer=norm)
    return MaskRCNN(
        backbone, rpn_head=RPNHead(16, 3, 2 if with_norms else 1), rpn_anchor_generator=_default_anchorgen(),
        box_head=FastRCNNConvFCHead((16, 7, 7), [12, 8], [24], norm_layer=norm) if with_norms else TwoMLPHead(16 * 49, 24),
        box_predictor=FastRCNNPredictor(24, 6), mask_head=MaskRCNNHeads(16, [12, 8], 1, norm_layer=norm),
        mask_predictor=MaskRCNNPredictor(8, 10, 6), rpn_pre_nms_top_n_train=60, rpn_post_nms_top_n_train=50, rpn_pre_nms_top_n_test=40,
        rpn_post_nms_top_n_test=30, box_batch_size_per_image=40, rpn_batch_size_per_image=64, box_score_thresh=0.1, box_detections_per_img=12)


def randomise(torch, model):
    """A state in which scores differ and boxes move."""
    for name, value in list(model.named_parameters()) + list(model.named_buffers()):
        with torch.no_grad():
            if name.endswith("running_var"):
                value.uniform_(0.5, 1.5)
            elif name.endswith("running_mean") or name.endswith("bias"):
                value.normal_(0, 0.1)
            elif value.dim() == 1:
                value.uniform_(0.6, 1.2)
            elif value.dim() > 1:
                gain = 1.5 if "cls_score" in name or "mask_fcn_logits" in name else 0.5 if "bbox_pred" in name else 1.2
                value.normal_(0, gain / value[0].numel() ** 0.5)


def pictures(torch):
    """Two images of other sizes with their things, the second of none in a corner."""
    sizes, images, targets = [(96, 128), (90, 72)], [], []
    for (height, width), boxes in zip(sizes, ([[8, 10, 60, 70], [50, 20, 120, 90], [0, 0, 30, 24]], [[5, 5, 70, 80]])):
        image = torch.nn.functional.interpolate(torch.randn(1, 3, 6, 8, dtype=torch.float64), (height, width), mode="bilinear")[0]
        images.append(image + 0.5 * torch.randn(3, height, width, dtype=torch.float64))
        masks = (torch.rand(len(boxes), height, width) > 0.4).to(torch.uint8)
        targets.append(dict(boxes=torch.tensor(boxes, dtype=torch.float64), labels=torch.randint(1, 6, (len(boxes),)), masks=masks))
    return images, targets


def batched(torch, images):
    batch = torch.zeros(len(images), 3, 96, 128, dtype=images[0].dtype)
    for place, image in zip(batch, images):
        place[:, :image.shape[1], :image.shape[2]] = image
    return batch


def write_mask_rcnn(torch, torchvision, with_norms, out):
    from safetensors.torch import save_file
    from torchvision.models.detection.image_list import ImageList
    torch.manual_seed(SEED + with_norms)
    model = small_mask_rcnn(torch, torchvision, with_norms)
    randomise(torch, model)
    images, targets = pictures(torch)
    # a state of float32 numbers, and all that follows in float64
    tensors = {"sd." + name: value.clone() for name, value in model.state_dict().items()}
    model.double()
    batch = ImageList(batched(torch, images), [tuple(image.shape[1:]) for image in images])
    model.transform.forward = lambda _, given=None: (batch, given)
    tensors["images"] = batch.tensors
    for i, target in enumerate(targets):
        tensors |= {f"target.{i}.{name}": value for name, value in target.items()}
    torch.randperm = lambda count, device=None: torch.arange(count, device=device) * 7919 % max(count, 1)

    proposals = Recorded(model.rpn, "filter_proposals")
    losses = model.train()(images, targets)
    sum(losses.values()).backward()
    tensors |= {"loss." + name: value.detach().reshape(1) for name, value in losses.items()}
    tensors |= {f"training.proposals.{i}": boxes for i, boxes in enumerate(proposals.returned[0][0])}
    tensors |= {"grad." + name: value.grad for name, value in model.named_parameters()}
    tensors |= {"train." + name: value.clone() for name, value in model.state_dict().items() if "running" in name and with_norms}

    model.load_state_dict({name: tensors["sd." + name].to(value.dtype) for name, value in model.state_dict().items()})
    small_masks = Recorded(torchvision.models.detection.roi_heads, "maskrcnn_inference")
    with torch.no_grad():
        found = model.eval()(images)
    for i, boxes in enumerate(proposals.returned[1][0]):
        tensors[f"evaluation.proposals.{i}"] = boxes
        tensors |= {f"found.{i}.{name}": value for name, value in found[i].items()}
        tensors[f"found.{i}.small_masks"] = small_masks.returned[0][i]
        assert len(found[i]["boxes"]) > 3, f"{len(found[i]['boxes'])} detections prove little"
    for name, value in tensors.items():
        if name.startswith("grad."):
            assert value.count_nonzero(), f"the gradient of {name} is 0, which proves nothing of it"
    save_file({name: value.detach().clone().contiguous() for name, value in tensors.items()}, out)


def write_names(torchvision, out):
    from torchvision.models.detection import maskrcnn_resnet50_fpn, maskrcnn_resnet50_fpn_v2
    models = dict(plain=maskrcnn_resnet50_fpn, with_norms=maskrcnn_resnet50_fpn_v2)
    states = {name: build(weights=None, weights_backbone=None).state_dict() for name, build in models.items()}
    with open(out, "w") as text:
        json.dump({model: {name: list(value.shape) for name, value in state.items()} for model, state in states.items()}, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="folder to write to")
    out = parser.parse_args().out
    demand()
    from write_ground_truth import made_from
    stamp = os.path.join(out, "made_from.json")
    if os.path.exists(stamp) and open(stamp).read() == made_from("detection"):
        return print(f"{out} is up to date")
    from compiled_torchvision import import_torchvision
    torchvision = import_torchvision()
    import torch
    torch.set_num_threads(1)
    os.makedirs(out, exist_ok=True)
    write_regions(torch, torchvision.ops, os.path.join(out, "regions.safetensors"))
    write_boxes(torch, torchvision.ops, os.path.join(out, "boxes.safetensors"))
    write_names(torchvision, os.path.join(out, "names.json"))
    for name in ("plain", "with_norms"):
        write_mask_rcnn(torch, torchvision, name == "with_norms", os.path.join(out, name + ".safetensors"))
    with open(stamp, "w") as text:
        text.write(made_from("detection"))
    print(f"files in {out}")


if __name__ == "__main__":
    main()
