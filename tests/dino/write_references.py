#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what the C++ self-distillation is compared with: one safetensors file for each case.

  write_references.py --out DIR

Each file holds the state as sd.<name>, the views `globals` [2·B, 3, 32, 32] and `locals` [3·B, 3, 16, 16], view by view, and of a step
in training mode: student [5·B, K], teacher [2·B, K], targets [2, B, K], loss, grad.<name>, and of the update after it centre and
teacher.<name>; of a ViT also features.last (class tokens of the last two blocks, then the mean of the patches) of `globals`, in
evaluation. Metadata key "config": family, sizes and numbers. Weights are random. Nothing is written where this code and these versions
have written.
"""
import pathlib
import sys
import zlib
from functools import partial

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "parity")]
from references import write_references

B, PROTOTYPES = 3, 40
CASES = dict(
    vit=dict(family="vit", sizes=dict(img_size=32, patch_size=8, embed_dim=32, depth=3, num_heads=2), fixed_norm=False),
    xcit=dict(family="xcit", sizes=dict(img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=4, eta=1.0, tokens_norm=True),
              fixed_norm=True))
NUMBERS = dict(student_temperature=0.1, teacher_temperature=0.2, centre_momentum=0.9, teacher_momentum=0.75, hidden=48, bottleneck=16)


def backbone(case):
    from timm.models.vision_transformer import VisionTransformer
    from timm.models.xcit import Xcit
    if case["family"] == "xcit":
        return Xcit(num_classes=0, **case["sizes"])
    return VisionTransformer(num_classes=0, dynamic_img_size=True, **case["sizes"])


def randomise(model):
    """A state that no initialisation gives, so that every tensor shows in the result."""
    import torch
    with torch.no_grad():
        for name, value in model.named_parameters():
            is_scale = value.ndim < 2 and not name.endswith("bias") or "temperature" in name or name.endswith("weight_g")
            noise = torch.randn(value.shape)
            value.copy_(0.6 + 0.8 * noise.abs().clamp(max=1) if is_scale else 0.3 * noise if value.ndim < 2 or "embed" == name[-5:]
                        else 1.3 * noise / value[0].numel() ** 0.5)
    return model


def tensors_of(name, case):
    import torch
    from reference_dino import Head, Network, loss, targets
    torch.manual_seed(zlib.crc32(name.encode()))
    numbers = NUMBERS
    network = lambda: randomise(Network(backbone(case), Head(32, numbers["hidden"], numbers["bottleneck"], PROTOTYPES))).train()
    student, teacher = network(), network()
    if case["fixed_norm"]:
        for one in (student, teacher):
            one.head.last_layer.weight_g.data.fill_(1)
        student.head.last_layer.weight_g.requires_grad_(False)
    centre = 0.5 * torch.randn(PROTOTYPES)
    state = lambda: {**{f"student.{key}": value.clone() for key, value in student.state_dict().items()},
                     **{f"teacher.{key}": value.clone() for key, value in teacher.state_dict().items()}, "centre.mean": centre.clone()}
    tensors = {f"sd.{key}": value for key, value in state().items()}
    views = dict(globals=torch.randn(2 * B, 3, 32, 32), locals=torch.randn(3 * B, 3, 16, 16))
    if case["family"] == "vit":
        with torch.no_grad():
            last = student.eval().backbone.forward_intermediates(views["globals"], indices=2, norm=True, output_fmt="NLC",
                                                                 return_prefix_tokens=True, intermediates_only=True)
            tensors["features.last"] = torch.cat([prefix[:, 0] for _, prefix in last] + [last[-1][0].mean(1)], 1)
        student.train()
    of_student = student(views["globals"], views["locals"])
    with torch.no_grad():
        of_teacher = teacher(views["globals"])
    wanted = targets(of_teacher.view(2, B, -1), centre, numbers["teacher_temperature"])
    value = loss(of_student.view(5, B, -1), wanted, numbers["student_temperature"])
    learning = {key: parameter for key, parameter in student.named_parameters() if parameter.requires_grad}
    gradients = torch.autograd.grad(value, list(learning.values()))
    tensors |= views | dict(student=of_student, teacher=of_teacher, targets=wanted, loss=value)
    tensors |= {f"grad.student.{key}": gradient for key, gradient in zip(learning, gradients)}
    m, c = numbers["teacher_momentum"], numbers["centre_momentum"]
    others = dict(student.named_parameters())
    tensors |= {f"teacher.{key}": m * parameter + (1 - m) * others[key] for key, parameter in teacher.named_parameters()}
    tensors["centre"] = c * centre + (1 - c) * of_teacher.mean(0)
    return tensors


def all_cases():
    for name, case in CASES.items():
        yield name, case | NUMBERS | dict(prototypes=PROTOTYPES), partial(tensors_of, name, case)


write_references(__doc__, HERE.glob("*.py"), all_cases)
