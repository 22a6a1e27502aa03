# SPDX-License-Identifier: Apache-2.0
"""The mean shift and the manifold key inside the windows of a timm Swin, in plain PyTorch (MSF Table 5; manifold key section 5)."""
import torch
from torch import nn

from .manifold_key import ManifoldKey
from .msf import grouped_linear


class SwinAttention(nn.Module):
    """Takes the place of timm's window attention: x (windows*B, N, dim), mask (windows, N, N) or None.

    variant: orig, msf, msf-gG, or a kind of manifold key with `charts`. The position bias and the mask are added to the scaled
    scores; the Gaussian's term is inside the scale.
    """

    def __init__(self, old, variant, charts=8):
        super().__init__()
        dim, self.heads = old.dim, old.num_heads
        self.scale, n = (dim // self.heads) ** -0.5, old.window_area
        kind = variant.split("-")[0]
        self.groups = int(variant.split("-g")[1]) if "-g" in variant else 1
        if kind in ("orig", "msf"):
            self.names = "qkv" if kind == "orig" else "qkvp"
            self.weight = nn.ParameterDict({c: nn.Parameter(torch.empty(dim, dim // self.groups)) for c in self.names})
            self.bias = nn.ParameterDict({c: nn.Parameter(torch.empty(dim)) for c in self.names})
        else:
            self.names = None
            self.qv = nn.Linear(dim, 2 * dim)
            self.key = ManifoldKey(dim, n, charts, kind)
        self.proj = nn.Linear(dim, dim)
        self.relative_position_bias_table = nn.Parameter(old.relative_position_bias_table.detach().clone())
        self.register_buffer("index", old.relative_position_index.detach().clone().reshape(-1), persistent=False)

    def roles(self, x):
        """Query, key, value and PROBE (None: there is none)."""
        def cut(t):
            return t.reshape(*x.shape[:2], self.heads, -1).transpose(1, 2)

        if self.names:
            made = [cut(grouped_linear(x, self.weight[c], self.groups, "interleaved") + self.bias[c]) for c in self.names]
            return made if len(made) == 4 else [*made, None]
        q, v = self.qv(x).chunk(2, -1)
        return cut(q), cut(self.key(x)), cut(v), None

    def forward(self, x, mask=None):
        b, n, dim = x.shape
        q, k, v, p = self.roles(x)
        scores = q @ k.transpose(-1, -2)
        if p is not None:
            scores = scores - 0.5 * k.square().sum(-1).unsqueeze(-2)
        scores = scores * self.scale + self.relative_position_bias_table[self.index].view(n, n, -1).permute(2, 0, 1)
        if mask is not None:
            w = mask.shape[0]
            scores = (scores.view(-1, w, self.heads, n, n) + mask[None, :, None]).view(b, self.heads, n, n)
        out = scores.softmax(-1) @ v
        if p is not None:
            out = out - p
        return self.proj(out.transpose(1, 2).reshape(b, n, dim))


def swin_replace(model, variant, charts=8):
    for layer in model.layers:
        for block in layer.blocks:
            block.attn = SwinAttention(block.attn, variant, charts)
    return model
