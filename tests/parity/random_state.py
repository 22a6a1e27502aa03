# SPDX-License-Identifier: Apache-2.0
"""Weights and images of a case. They are random and depend only on the names of case and tensor and on SEED."""
import math
import zlib

import torch
from torch import nn

import families

SEED = 20240614
TOKENS_AND_TABLES = ("cls_token", "pos_embed", "cls", "pos")


def generator(*key):
    g = torch.Generator()
    g.manual_seed((SEED + zlib.crc32("/".join(key).encode())) % (1 << 31))
    return g


def conv_gain(case):
    return getattr(families.of_case(case), "CONVOLUTION_GAIN", 1.0)


def randomise(model, case):
    """Sets a state that no initialisation gives, so that every parameter and every statistic shows in the result."""
    for prefix, module in model.named_modules():
        values = {**dict(module.named_parameters(recurse=False)), **dict(module.named_buffers(recurse=False))}
        for name, value in values.items():
            with torch.no_grad():
                fill(value, module, name, case, f"{prefix}.{name}" if prefix else name)
    return model


def fill(value, module, name, case, full_name):
    def normal(deviation):
        value.copy_(torch.randn(value.shape, generator=generator(case, full_name)) * deviation)

    def uniform(low, high):
        value.copy_(torch.rand(value.shape, generator=generator(case, full_name)) * (high - low) + low)

    if not isinstance(value, nn.Parameter):
        if name == "running_mean":
            normal(0.1)
        elif name == "running_var":
            uniform(0.5, 1.5)
    elif isinstance(module, (nn.modules.batchnorm._BatchNorm, nn.LayerNorm)):
        uniform(0.6, 1.4) if name == "weight" else normal(0.1)
    elif isinstance(module, (nn.Linear, nn.Conv1d, nn.Conv2d)):
        gain = conv_gain(case) if isinstance(module, nn.Conv2d) else 1.0
        normal(gain / math.sqrt(value[0].numel()) if name == "weight" else 0.1)
    elif "temperature" in name:
        uniform(0.5, 2.0)
    elif "gamma" in name:
        uniform(0.3, 1.0)
    elif name in TOKENS_AND_TABLES or "relative_position_bias_table" in name:
        normal(0.5)
    elif name == "code":
        normal(1.0)
    else:
        normal(1.0 / math.sqrt(value.shape[-1]) if value.ndim >= 2 else 0.1)


def images(case, size):
    """Noise plus a smooth random image, so that the two inputs differ after the mean over the tokens too."""
    noise = torch.randn(2, 3, size, size, generator=generator(case, "input"))
    coarse = torch.randn(2, 3, 4, 4, generator=generator(case, "coarse"))
    return 0.5 * noise + 1.5 * nn.functional.interpolate(coarse, size=(size, size), mode="bilinear", align_corners=False)
