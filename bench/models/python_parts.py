# SPDX-License-Identifier: Apache-2.0
"""The Python side of each part that bench.py times: what a user would write today. `scaled_dot_product_attention` where it serves,
timm's modules where timm has them, and tests/parity for what only the papers have. The C++ side is parts.cc."""
import torch
from torch import nn
import torch.nn.functional as F

import reference_models as R
from families.swin_v2 import KeyCosineAttention


class FusedAttention(nn.Module):
    """The original attention of the simple ViT as it is written since fused attention exists."""

    def __init__(self, dim=384, heads=6):
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(dim)
        self.to_qkv, self.to_out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.to_qkv(self.norm(x)).reshape(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        return self.to_out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, d))


class OfMap(nn.Module):
    """A part of XCiT, which wants to know that its tokens lie in a map of 14 x 14."""

    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x):
        return self.part(x, 14, 14)


class First(nn.Module):
    """A part that returns more than its tokens."""

    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x):
        return self.part(x)[0]


def started(module):
    """Parameters that the references leave empty for a state to fill."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.02)
    return module


def parts(timm):
    """By name: what makes the module, and the shape of its input."""
    models = timm.models
    window = models.swin_transformer.WindowAttention
    cosine = models.swin_transformer_v2.WindowAttention

    def msf(share="QKVPW", groups=1, layout="interleaved"):
        kernel, probe = ("gaussian", "inside") if share[3] != "-" else ("dot", "none")
        return lambda: (started(R.SharedAttention(384, 6, 64, kernel, probe, share, groups, layout)), (8, 196, 384))

    def key(kind):
        return lambda: (R.ManifoldKey(384, 197, 8, kind), (4, 197, 384))

    def embedding(hidden, kind, size=0):
        codes = R.Codes(size) if size else None
        return lambda: (R.NonLinearQKV(192, hidden, kind, codes, size), (16, 196, 192))

    def in_windows(variant):
        return lambda: (started(R.SwinAttention(window(96, num_heads=3, window_size=7), variant)), (8 * 64, 49, 96))

    def bottleneck(groups, width):
        return lambda: (models.resnet.Bottleneck(256, 64, cardinality=groups, base_width=width), (4, 256, 56, 56))

    return {
        "attention-original": lambda: (FusedAttention(), (8, 196, 384)),
        "attention-original-eager": msf("QKV-W"),
        "attention-original-groups-2": msf("QKV-W", 2),
        "attention-msf": msf(),
        "attention-msf-qkkkw": msf("QKKKW"),
        "attention-msf-groups-2": msf("QKVPW", 2),
        "attention-msf-groups-2-block": msf("QKVPW", 2, "block"),
        "key-spatialk": key("spatial"),
        "key-kua": key("kua"),
        "key-simplek": key("simple"),
        "key-vanillak": key("vanilla"),
        "embedding-sne": embedding(96, "sne"),
        "embedding-p-sne": embedding(144, "psne"),
        "embedding-f-sne-8": embedding(192, "fsne", 8),
        "xca": lambda: (models.xcit.XCA(192, num_heads=4, qkv_bias=True), (16, 196, 192)),
        "lpi": lambda: (OfMap(models.xcit.LPI(192)), (16, 196, 192)),
        "class-attention": lambda: (models.cait.ClassAttn(192, num_heads=4, qkv_bias=True), (16, 197, 192)),
        "self-attention": lambda: (models.vision_transformer.Attention(384, num_heads=6, qkv_bias=True), (8, 197, 384)),
        "window-attention": lambda: (window(96, num_heads=3, window_size=7), (8 * 64, 49, 96)),
        "window-attention-msf": in_windows("msf"),
        "window-attention-key": in_windows("spatial"),
        "window-cosine-attention": lambda: (cosine(96, (8, 8), 3), (8 * 64, 64, 96)),
        "window-cosine-attention-key": lambda: (KeyCosineAttention(cosine(96, (8, 8), 3), "spatial", 8), (8 * 64, 64, 96)),
        "patch-embedding": lambda: (timm.layers.PatchEmbed(224, 16, 3, 384), (8, 3, 224, 224)),
        "conv-patches": lambda: (First(models.xcit.ConvPatchEmbed(224, 16, 3, 192)), (8, 3, 224, 224)),
        "patch-merging": lambda: (models.swin_transformer.PatchMerging(96), (8, 56, 56, 96)),
        "mlp": lambda: (timm.layers.Mlp(384, 1536), (8, 197, 384)),
        "squeeze-excite": lambda: (timm.layers.SqueezeExcite(144, rd_channels=36), (8, 144, 56, 56)),
        "resnet-bottleneck": bottleneck(1, 64),
        "resnext-bottleneck": bottleneck(32, 4),
        "mbconv": lambda: (timm.create_model("efficientnet_b0").blocks[2][1], (8, 40, 28, 28)),
        "regnet-block": lambda: (timm.create_model("regnety_160").s1.b2, (2, 224, 56, 56)),
        "vit-block": lambda: (models.vision_transformer.Block(384, 6, qkv_bias=True), (8, 197, 384)),
        "swin-block": lambda: (timm.create_model("swin_tiny_patch4_window7_224").layers[0].blocks[1], (4, 56, 56, 96)),
        "xcit-block": lambda: (OfMap(models.xcit.XCABlock(192, 4, qkv_bias=True, eta=1.0)), (16, 196, 192)),
        "class-attention-block": lambda: (models.xcit.ClassAttentionBlock(192, 4, qkv_bias=True, eta=1.0, tokens_norm=True), (16, 197, 192)),
    }
