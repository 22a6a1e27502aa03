#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what the C++ backbones and segmenters are compared with: one safetensors file for each case.

  write_references.py --out DIR

Each file holds `input` [B, 3, H, W], the state dict as sd.<name>, and
  of a backbone   map.<level>, in evaluation; grad.<name>, those of Σ map · along.<level>
  of a segmenter  logits and beside.<head>, in evaluation; labels; loss, loss_valid (the mean over pixels that are not ignored) and
                  grad.<name> of a step in training mode, without dropout
and, as metadata key "config", what the model is built from. Gradients, and the losses that they are of, are computed in double
precision: in single, the one of ten thousand values before a ReLU that is next to zero falls on either side of it, by the processor's
order of summing. Weights are random, and depend on the names of case and tensor alone.
Nothing is written where this code and these versions have written.
"""
import math
import pathlib
import sys
import zlib
from functools import partial

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "parity")]
from references import write_references

IGNORED, CLASSES = 255, 7


def generator(*key):
    import torch
    return torch.Generator().manual_seed(zlib.crc32("/".join(key).encode()))


def randomise(model, case):
    """A state that no initialisation gives, so that every tensor shows in the result."""
    import torch
    from torch import nn
    for prefix, module in model.named_modules():
        tensors = dict(module.named_parameters(recurse=False))  # and running statistics: other buffers are tables
        tensors |= {name: value for name, value in module.named_buffers(recurse=False) if name.startswith("running_")}
        is_norm = isinstance(module, (nn.LayerNorm, nn.modules.batchnorm._BatchNorm))
        for name, value in tensors.items():
            noise = torch.randn(value.shape, generator=generator(case, prefix, name))
            with torch.no_grad():
                if name == "running_var" or (is_norm and name == "weight") or "gamma" in name or "temperature" in name:
                    value.copy_(noise.abs().clamp(max=1) * 0.8 + 0.6)
                elif value.ndim < 2 or "relative_position" in name or name in ("cls_token", "pos_embed"):
                    value.copy_(0.3 * noise)
                elif isinstance(module, nn.ConvTranspose2d):
                    value.copy_(noise / math.sqrt(value.shape[0]))
                else:
                    value.copy_(1.3 * noise / math.sqrt(value[0].numel()))
    return model


def images(case, batch, rows, columns):
    import torch
    from torch.nn import functional
    noise = torch.randn(batch, 3, rows, columns, generator=generator(case, "noise"))
    coarse = torch.randn(batch, 3, 4, 4, generator=generator(case, "coarse"))
    return 0.5 * noise + 1.5 * functional.interpolate(coarse, size=(rows, columns), mode="bilinear")


def backbones():
    """Of each: its family, its sizes, the size of images, what builds it."""
    from reference_maps import Maps, Pyramid, SimpleVitTrunk, SwinTrunk, VitTrunk, XcitTrunk
    xcit = lambda patch: dict(img_size=64, patch_size=patch, embed_dim=32, depth=6, num_heads=4, eta=1.0)
    vit = dict(img_size=64, patch_size=16, embed_dim=32, depth=4, num_heads=4)
    swin = dict(img_size=64, patch_size=4, embed_dim=16, depths=(2, 2, 2, 2), num_heads=(2, 2, 4, 4), window_size=4)
    swin_2 = dict(swin, depths=(2, 2), num_heads=(2, 4))
    attention = [dict(kernel="gaussian", probe="inside", share="QKVPW")] * 4
    simple = dict(image_size=64, patch=16, dim=32, heads=2, dim_head=16, mlp_dim=48, attention=attention)
    return dict(
        maps_xcit_16=("xcit", xcit(16), (64, 96), lambda: Pyramid(XcitTrunk([2, 3, 4, 6], **xcit(16)), 32, 16)),
        maps_xcit_8=("xcit", xcit(8), (64, 64), lambda: Pyramid(XcitTrunk([2, 3, 4, 6], **xcit(8)), 32, 8)),
        maps_vit=("vit", vit, (64, 64), lambda: Maps(VitTrunk([1, 2, 3, 4], **vit))),
        maps_vit_larger=("vit", vit, (96, 80), lambda: Maps(VitTrunk([1, 2, 3, 4], **vit))),
        maps_vit_pyramid=("vit", vit, (32, 64), lambda: Pyramid(VitTrunk([1, 2, 3, 4], **vit), 32, 16)),
        maps_simple_vit=("simple-vit", simple, (64, 64), lambda: Maps(SimpleVitTrunk([1, 2, 3, 4], **simple))),
        maps_simple_vit_larger=("simple-vit", simple, (48, 96), lambda: Maps(SimpleVitTrunk([1, 2, 3, 4], **simple))),
        maps_swin=("swin", swin, (64, 64), lambda: Maps(SwinTrunk(1, **swin))),
        maps_swin_2=("swin", swin_2, (48, 80), lambda: Maps(SwinTrunk(1, **swin_2))),
        maps_swin_v2=("swin-v2", swin_2, (88, 52), lambda: Maps(SwinTrunk(2, **swin_2))))


def segmenters():
    """Of each: its head and what the C++ options say of it, the backbone, neck, heads."""
    import torch
    from reference_heads import FcnHead, FeaturePyramid, MlaNeck, Segmenter, SemanticFpnHead, SetrMlaHead, SetrUpHead, UperNetHead
    of = backbones()
    pyramid, strides = [32] * 4, [4, 8, 16, 32]

    def case(head, backbone, options, *parts):
        family, sizes, _, build = of[backbone]
        config = dict(head=head, family=family, sizes=sizes, options=options)
        return config, lambda: Segmenter(build(), *(part() for part in parts))

    nothing = lambda: None
    ups = lambda kernel: lambda: torch.nn.ModuleList(SetrUpHead(level, 32, CLASSES, 24, 2, kernel, 4) for level in range(3))
    fcns = lambda: torch.nn.ModuleList(FcnHead(level, 24, CLASSES, 24, 0) for level in range(4))
    fpn = lambda align_corners: lambda: SemanticFpnHead(pyramid, strides, CLASSES, 16, align_corners)
    neck = lambda: FeaturePyramid(pyramid, 32)
    return dict(
        segmenter_semantic_fpn=case("semantic-fpn", "maps_xcit_16", dict(channels=16), neck, fpn(False), nothing),
        segmenter_semantic_fpn_corners=case("semantic-fpn", "maps_xcit_8", dict(channels=16, align_corners=True), neck, fpn(True),
                                            nothing),
        segmenter_semantic_fpn_swin=case("semantic-fpn", "maps_swin", dict(channels=16), lambda: FeaturePyramid([16, 32, 64, 128], 16),
                                         lambda: SemanticFpnHead([16] * 4, strides, CLASSES, 16), nothing),
        segmenter_uper_net=case("uper-net", "maps_xcit_16", dict(channels=24, auxiliary=16), nothing,
                                lambda: UperNetHead(pyramid, CLASSES, 24), lambda: FcnHead(2, 32, CLASSES, 16)),
        segmenter_setr_naive=case("setr-naive", "maps_vit", dict(channels=24), nothing,
                                  lambda: SetrUpHead(3, 32, CLASSES, 24, 1, 1, 4), ups(1)),
        segmenter_setr_pup=case("setr-pup", "maps_vit", dict(channels=24), nothing,
                                lambda: SetrUpHead(3, 32, CLASSES, 24, 4, 3, 2), ups(3)),
        segmenter_setr_mla=case("setr-mla", "maps_simple_vit", dict(channels=24, mla_channels=8),
                                lambda: MlaNeck(pyramid, 24), lambda: SetrMlaHead(4, 24, CLASSES, 8), fcns))


def gradients(model, loss):
    import torch
    parameters = dict(model.named_parameters())
    found = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
    return {f"grad.{name}": gradient for name, gradient in zip(parameters, found) if gradient is not None}


def state(model):
    return {f"sd.{name}": value.clone() for name, value in model.state_dict().items() if "attn_mask" not in name}


def backbone_tensors(case, size, build):
    import torch
    model = randomise(build(), case).eval()
    tensors = dict(state(model), input=images(case, 2, *size))
    with torch.no_grad():
        tensors |= {f"map.{level}": x for level, x in enumerate(model(tensors["input"]))}
    loss = 0
    for level, x in enumerate(model.double()(tensors["input"].double())):
        along = torch.randn(x.shape, generator=generator(case, "along", str(level)))
        tensors |= {f"along.{level}": along}
        loss = loss + (x * along).sum()
    return tensors | gradients(model, loss)


def segmenter_tensors(case, build):
    import torch
    from reference_heads import losses
    model = randomise(build(), case).eval()
    labels = torch.randint(0, CLASSES, (3, 64, 96), generator=generator(case, "labels"))
    labels[:, :9, 30:70] = IGNORED
    size = (64, 96) if "xcit" in type(model.backbone.trunk).__name__.lower() else (64, 64)
    tensors = dict(state(model), input=images(case, 3, *size), labels=labels)
    with torch.no_grad():
        tensors["logits"], beside = model(tensors["input"])
    tensors |= {f"beside.{head}": x for head, x in enumerate(beside)}
    answers = model.double().train()(tensors["input"].double())
    loss = losses(*answers, labels)
    return tensors | dict(loss=loss, loss_valid=losses(*answers, labels, counts_ignored=False)) | gradients(model, loss)


def all_cases():
    for name, (family, sizes, size, build) in backbones().items():
        yield name, dict(family=family, sizes=sizes), partial(backbone_tensors, name, size, build)
    for name, (config, build) in segmenters().items():
        yield name, config, partial(segmenter_tensors, name, build)


write_references(__doc__, [*HERE.glob("*.py"), *(HERE.parent / "parity" / "reference_models").glob("*.py")], all_cases)
