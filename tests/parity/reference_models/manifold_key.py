# SPDX-License-Identifier: Apache-2.0
"""The manifold key and a vision transformer with a class token that uses it, in plain PyTorch.

Written from the paper's text (equations 2 to 5, Algorithm 1).
"""
import torch
from torch import nn

from .msf import FeedForward, patchify


class ManifoldKey(nn.Module):
    """x (B, N, dim) -> key (B, N, dim). `kind`: spatial, kua, simple, vanilla, vanilla_nocb (no context broadcasting).

    The charts are the slow axis of the channels: rows [h*dim, (h+1)*dim) of k.weight make chart h.
    """

    def __init__(self, dim, tokens, charts=8, kind="spatial"):
        super().__init__()
        self.kind, self.charts = kind, charts
        self.k = nn.Linear(dim, charts * dim, bias=False)
        self.gamma = nn.Parameter(torch.ones(charts * dim))
        dense = kind == "simple"
        self.spatial = nn.Conv1d(charts * tokens, tokens if dense else charts * tokens, 1, groups=1 if dense else charts,
                                 bias=False)
        if kind in ("kua", "vanilla"):
            self.gamma_cb = nn.Parameter(torch.ones(dim))
        if kind in ("spatial", "kua"):
            self.to_out = nn.Linear(charts * dim, dim, bias=False)

    def forward(self, x):
        b, n, d = x.shape
        h = self.charts
        x = (self.gamma * self.k(x)).reshape(b, n, h, d).transpose(1, 2).reshape(b, h * n, d)
        x = self.spatial(x)  # mixes the tokens inside a chart, or all of them
        if self.kind == "simple":
            return x
        if self.kind in ("kua", "vanilla"):
            x = 0.5 * (x + self.gamma_cb * x.mean(1, keepdim=True))  # the mean over charts and tokens
        x = x.reshape(b, h, n, d)
        if self.kind in ("spatial", "kua"):
            return self.to_out(x.transpose(1, 2).reshape(b, n, h * d))
        return x.mean(1)


class KeyAttention(nn.Module):
    """`kind` "none": the usual linear key."""

    def __init__(self, dim, heads, tokens, charts, kind):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.norm = nn.LayerNorm(dim)
        self.to_q, self.to_v = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.key = nn.Linear(dim, dim, bias=False) if kind == "none" else ManifoldKey(dim, tokens, charts, kind)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        x = self.norm(x)
        b, n, d = x.shape
        q, k, v = (t.reshape(b, n, self.heads, -1).transpose(1, 2) for t in (self.to_q(x), self.key(x), self.to_v(x)))
        weights = (q @ k.transpose(-1, -2) * self.scale).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(b, n, d))


class KeyViT(nn.Module):
    """Learned positions, layer norms around the patch projection, one last norm, a linear head on the class token."""

    def __init__(self, image=224, patch=16, classes=1000, dim=384, depth=12, heads=6, mlp=None, charts=8, kind="none"):
        super().__init__()
        self.patch, tokens = patch, (image // patch) ** 2 + 1
        self.embed_norm1, self.embed = nn.LayerNorm(3 * patch * patch), nn.Linear(3 * patch * patch, dim)
        self.embed_norm2 = nn.LayerNorm(dim)
        self.cls = nn.Parameter(torch.randn(1, 1, dim))
        self.pos = nn.Parameter(torch.randn(1, tokens, dim))
        self.attn = nn.ModuleList([KeyAttention(dim, heads, tokens, charts, kind) for _ in range(depth)])
        self.ff = nn.ModuleList([FeedForward(dim, mlp or 4 * dim) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)

    def forward(self, images):
        x = self.embed_norm2(self.embed(self.embed_norm1(patchify(images, self.patch))))
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.pos
        for attention, ff in zip(self.attn, self.ff):
            x = attention(x) + x
            x = ff(x) + x
        return self.head(self.norm(x)[:, 0])
