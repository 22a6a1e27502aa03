# SPDX-License-Identifier: Apache-2.0
"""The Swin transformer V2: timm's, and manifold keys in its windows. Configurations are as swin.py's."""
import math

import torch
from torch import nn

import reference_models as R

from families import swin
from large import presets_of_timm

NAME, FAMILY = "swinv2", "swin-v2"
FEATURES, GRADIENTS = swin.FEATURES, swin.GRADIENTS
WORDS, FIELDS, HAS_OWN_ATTENTION, spelled_out = swin.WORDS, swin.FIELDS, swin.HAS_OWN_ATTENTION, swin.spelled_out
GIVEN = {"SwinV2": "NormPlace::kAfter"}
PASSED_ON = {"SwinV2Options.pretrained_window": "WindowAttentionOptions.pretrained_window"}
EXCEPTIONS = {"CosineAttentionBase": "the base of Swin V2's attention in windows"}

class KeyCosineAttention(nn.Module):
    """Version 2's attention with a manifold key in place of the linear one: the angle is that between q and the new key."""

    def __init__(self, old, key, charts):
        super().__init__()
        dim, self.heads = old.dim, old.num_heads
        self.logit_scale, self.cpb_mlp = old.logit_scale, old.cpb_mlp
        self.q_bias, self.v_bias, self.proj = old.q_bias, old.v_bias, old.proj
        self.qv = nn.Linear(dim, 2 * dim, bias=False)
        self.key = R.ManifoldKey(dim, old.window_size[0] * old.window_size[1], charts, key)
        self.register_buffer("coordinates", old.relative_coords_table.clone(), persistent=False)
        self.register_buffer("index", old.relative_position_index.clone().reshape(-1), persistent=False)

    def forward(self, x, mask=None):
        b, n, dim = x.shape
        q, v = self.qv(x).chunk(2, -1)
        q, k, v = (t.reshape(b, n, self.heads, -1).transpose(1, 2) for t in (q + self.q_bias, self.key(x), v + self.v_bias))
        scores = q / q.norm(dim=-1, keepdim=True) @ (k / k.norm(dim=-1, keepdim=True)).transpose(-1, -2)
        scores = scores * self.logit_scale.clamp(max=math.log(100)).exp()
        table = 16 * torch.sigmoid(self.cpb_mlp(self.coordinates).view(-1, self.heads))
        scores = scores + table[self.index].view(n, n, -1).permute(2, 0, 1)
        if mask is not None:
            w = mask.shape[0]
            scores = (scores.view(-1, w, self.heads, n, n) + mask[None, :, None]).view(b, self.heads, n, n)
        return self.proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, dim))


def cases():
    from timm.models.swin_transformer_v2 import SwinTransformerV2
    out = []

    def add_timm(name, **sizes):
        config = dict(swin.SIZES, **sizes)
        out.append((name, "timm", config, lambda: SwinTransformerV2(**config)))

    add_timm("timm_swinv2_small", img_size=64, window_size=8)
    add_timm("timm_swinv2_sizes", img_size=32, patch_size=2, window_size=8, mlp_ratio=3)
    add_timm("timm_swinv2_padded", img_size=48, window_size=5)
    add_timm("timm_swinv2_pretrained_window", img_size=64, window_size=8, pretrained_window_sizes=(5, 3))
    sizes = dict(swin.SIZES, img_size=64, window_size=8)
    attention = (swin.QKV, swin.key("spatial", 2), swin.key("kua", 3), swin.QKV)
    out.append(("ref_swinv2_key", "families/swin_v2.py in a timm Swin V2", dict(sizes, attention=attention),
                lambda: swin.replace(SwinTransformerV2(**sizes), attention, KeyCosineAttention)))
    return out


def large_cases():
    return presets_of_timm("swinv2_tiny_window8_256", image_size=256)
