#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes numerical ground truth for the C++ models: one safetensors file for each case.

  write_ground_truth.py [--out DIR] [--only SUBSTRING ...] [--list]

Each file holds
  sd.<name>     the whole state dict
  input         (2, 3, S, S)         logits   (2, classes)
  target, loss  cross entropy of the logits against `target`, mean over the batch
  grad.<name>   gradients of that loss, for every parameter
  feat.<mod>    outputs of the attention branches and of the MLPs
and, as metadata key "ablate", a JSON text with the case's configuration and the version of PyTorch.

Weights, norms and inputs are random and depend only on the case's name, the tensor's name and SEED, so the files can be made
again at any time. Needs torch, numpy and safetensors.
"""
import argparse
import glob
import json
import math
import os
import sys
import zlib

import torch
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import reference_models

SEED = 20240614
DIMENSIONS = dict(image_size=64, patch=16, classes=10, dim=96, heads=3, dim_head=32, mlp_dim=192)


def attention(share, kernel=None, probe=None, groups=1, layout="interleaved", tied_weight_scale=1.0):
    """A layer's choices, complete; unless said, a PROBE means the mean shift and none the original transformer."""
    mean_shift = share[3] != "-"
    return dict(kernel=kernel or ("gaussian" if mean_shift else "dot"), probe=probe or ("inside" if mean_shift else "none"),
                share=share, groups=groups, layout=layout, tied_weight_scale=tied_weight_scale)


def cases():
    """name -> the attention of each layer."""
    out = {}
    for share in ("QKVPW", "QQQQQ", "QKKQQ", "QKKKQ", "QKKKW", "QKKPP", "QKVPP", "QKVPQ", "QQVVV", "QKV-W", "QKK-Q", "QQQ-Q", "QKV-V"):
        out[f"ref_msf_{share}"] = [attention(share)] * 2
    for share in ("QKVPW", "QKV-W"):
        out[f"ref_msf_{share}_g2_interleave"] = [attention(share, groups=2)] * 2
        out[f"ref_msf_{share}_g2_block"] = [attention(share, groups=2, layout="block")] * 2
    out["ref_msf_QKKKW_g2_interleave"] = [attention("QKKKW", groups=2)] * 2
    out["ref_msf_QKVPW_g3_interleave"] = [attention("QKVPW", groups=3)] * 2
    out["ref_msf_QKKPW_g4_block"] = [attention("QKKPW", groups=4, layout="block")] * 2
    out["ref_msf_gauss_orig"] = [attention("QKV-W", kernel="gaussian")] * 2
    out["ref_msf_dot_probe"] = [attention("QKVPW", kernel="dot")] * 2
    out["ref_msf_residual"] = [attention("QKVPW", probe="outside")] * 2
    out["ref_msf_residual_g2"] = [attention("QKVPW", probe="outside", groups=2)] * 2
    out["ref_msf_residual_QKKPQ"] = [attention("QKKPQ", probe="outside")] * 2
    out["ref_msf_tied_scale"] = [attention("QKK-Q", tied_weight_scale=32 ** -0.5), attention("QKKQQ", tied_weight_scale=0.5)]
    out["ref_msf_placement"] = [attention("QKV-W"), attention("QKVPW"), attention("QKV-W", kernel="none"), attention("QKKKW", groups=2)]
    return out


def generator(*key):
    g = torch.Generator()
    g.manual_seed((SEED + zlib.crc32("/".join(key).encode())) % (1 << 31))
    return g


def randomise(model, case):
    """Sets a state that no initialisation gives, so that every parameter shows in the result."""
    def normal(p, name, std):
        p.copy_(torch.randn(p.shape, generator=generator(case, name)) * std)

    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.ndim >= 2:
                normal(p, name, 1.0 / math.sqrt(p.shape[-1]))
            elif "norm" in name and name.endswith("weight"):
                p.copy_(torch.rand(p.shape, generator=generator(case, name)) * 0.8 + 0.6)
            else:
                normal(p, name, 0.1)
    return model


def images(case, size):
    """Noise plus a smooth random image, so that the two inputs differ after the mean over the tokens too."""
    noise = torch.randn(2, 3, size, size, generator=generator(case, "input"))
    coarse = torch.randn(2, 3, 4, 4, generator=generator(case, "coarse"))
    return 0.5 * noise + 1.5 * nn.functional.interpolate(coarse, size=(size, size), mode="bilinear", align_corners=False)


def run(case, layers):
    model = randomise(reference_models.SimpleViT(**DIMENSIONS, attention=layers), case)
    tensors = {"sd." + k: v.detach().clone() for k, v in model.state_dict().items()}
    tensors["input"] = images(case, DIMENSIONS["image_size"])
    for name, module in model.named_modules():
        if name.startswith(("attn.", "ff.")) and name.count(".") == 1 and not name.endswith(".mat"):
            module.register_forward_hook(lambda m, i, o, name=name: tensors.update({"feat." + name: o.detach().clone()}))
    logits = model(tensors["input"])
    target = torch.tensor([3, 7])
    loss = nn.functional.cross_entropy(logits, target)
    names, parameters = zip(*model.named_parameters())
    for name, gradient in zip(names, torch.autograd.grad(loss, parameters)):
        tensors["grad." + name] = gradient
    tensors.update(logits=logits.detach(), target=target, loss=loss.detach().reshape(1))
    return {k: v.contiguous() for k, v in tensors.items()}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", default="parity", help="folder to write to")
    arguments.add_argument("--only", nargs="*", default=[], help="cases whose name contains one of these")
    arguments.add_argument("--list", action="store_true", help="print the names of the cases and end")
    arguments = arguments.parse_args()
    chosen = {name: layers for name, layers in cases().items() if not arguments.only or any(s in name for s in arguments.only)}
    if arguments.list:
        return print("\n".join(chosen))

    from safetensors.torch import save_file
    torch.set_num_threads(1)  # the last bits depend on it
    os.makedirs(arguments.out, exist_ok=True)
    for old in glob.glob(os.path.join(arguments.out, "ref_msf_*.safetensors")):  # a case may be gone since
        os.remove(old)
    for name, layers in chosen.items():
        config = dict(DIMENSIONS, depth=len(layers), attention=layers)
        meta = dict(case=name, config=config, seed=SEED, torch=torch.__version__)
        save_file(run(name, layers), os.path.join(arguments.out, name + ".safetensors"), {"ablate": json.dumps(meta)})


if __name__ == "__main__":
    main()
