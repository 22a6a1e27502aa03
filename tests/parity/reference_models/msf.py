# SPDX-License-Identifier: Apache-2.0
"""The simple ViT of the MSF paper in plain PyTorch: what the C++ models must agree with.

Written from the paper's text (equations 1, 12 and 14, section 2.3, Tables 1 and 2). It says everything in the most
direct way: explicit softmax, one product for each role, no fused attention.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

ROLES = "QKVPW"


def grouped_linear(x, weight, groups, layout):
    """x (..., in), weight (out, in/groups); rows of `weight` are stored group after group.

    block        output j belongs to group j // (out/groups)
    interleaved  output j belongs to group j %  groups, row j // groups of that group
    """
    if groups == 1:
        return x @ weight.t()
    per = weight.shape[0] // groups
    cut = x.reshape(*x.shape[:-1], groups, x.shape[-1] // groups)
    parts = [cut[..., g, :] @ weight[g * per:(g + 1) * per].t() for g in range(groups)]
    return torch.cat(parts, -1) if layout == "block" else torch.stack(parts, -1).flatten(-2)


def projected(x, weights, name, groups, layout):
    """The output of the matrix `name` of `weights`, which are in the order of QUERY, KEY, VALUE, PROBE.

    fused-block  the release's blocks: one tensor holds all matrices, and the groups are blocks of its rows
    """
    if layout != "fused-block":
        return grouped_linear(x, weights[name], groups, layout)
    y = grouped_linear(x, torch.cat(list(weights.values())), groups, "block")
    return y.chunk(len(weights), -1)[list(weights).index(name)]


class SharedAttention(nn.Module):
    """Attention with the matrices of `share`: 'QKKKW' names, in the order of ROLES, the matrix that a role uses ('-': no PROBE).

    One parameter for each name, stored as (inner, dim/groups), the transpose of the paper's Q in R^{dim x inner}. WEIGHT is
    never grouped; its own matrix is stored (dim, inner); where it shares a name with a projection, W = Q as matrices in
    R^{dim x inner}, so the output layer uses the stored tensor as it lies, times `tied_weight_scale`.
    A PROBE outside is one (dim, dim) matrix on the normalised tokens, subtracted after WEIGHT.
    """

    def __init__(self, dim, heads, dim_head, kernel="dot", probe="none", share="QKV-W", groups=1, layout="interleaved",
                 tied_weight_scale=1.0):
        super().__init__()
        inner = heads * dim_head
        self.role = dict(zip(ROLES, share))
        self.heads, self.scale, self.groups, self.layout = heads, dim_head ** -0.5, groups, layout
        self.kernel, self.probe, self.tied_weight_scale = kernel, probe, tied_weight_scale
        projections = {self.role[r] for r in ("QKVP" if probe == "inside" else "QKV")}
        self.own_weight = self.role["W"] not in projections
        assert self.own_weight or groups == 1, "a shared WEIGHT cannot be grouped"
        self.norm = nn.LayerNorm(dim)
        self.mat = nn.ParameterDict({name: nn.Parameter(torch.empty(inner, dim // groups)) for name in sorted(projections)})
        if probe == "outside":
            self.mat[self.role["P"]] = nn.Parameter(torch.empty(dim, dim))
        if self.own_weight:
            self.mat[self.role["W"]] = nn.Parameter(torch.empty(dim, inner))

    def project(self, x, role):
        roles = "QKVP" if self.probe == "inside" else "QKV"
        weights = {self.role[r]: self.mat[self.role[r]] for r in roles}
        y = projected(x, weights, self.role[role], self.groups, self.layout)
        b, n, _ = y.shape
        return y.reshape(b, n, self.heads, -1).transpose(1, 2)

    def forward(self, x):
        x = self.norm(x)
        q, k, v = (self.project(x, role) for role in "QKV")
        scores = q @ k.transpose(-1, -2)
        if self.kernel == "gaussian":  # the |q|^2 term is the same for all keys: softmax drops it
            scores = scores - 0.5 * k.square().sum(-1).unsqueeze(-2)
        out = (scores * self.scale).softmax(-1) @ v
        if self.probe == "inside":
            out = out - self.project(x, "P")
        out = out.transpose(1, 2).flatten(2)
        weight = self.mat[self.role["W"]]
        out = out @ weight.t() if self.own_weight else out @ weight * self.tied_weight_scale
        return out - x @ self.mat[self.role["P"]].t() if self.probe == "outside" else out


class FeedForward(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.norm, self.fc1, self.fc2 = nn.LayerNorm(dim), nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(self.norm(x))))


def sincos_2d(h, w, dim, temperature=10000.0):
    """(h*w, dim): sin(x w), cos(x w), sin(y w), cos(y w); w_i = T^-(i/(dim/4-1)); row-major tokens."""
    omega = temperature ** -(torch.arange(dim // 4, dtype=torch.float64) / (dim // 4 - 1))
    y = torch.arange(h, dtype=torch.float64).repeat_interleave(w)[:, None] * omega
    x = torch.arange(w, dtype=torch.float64).repeat(h)[:, None] * omega
    return torch.cat([x.sin(), x.cos(), y.sin(), y.cos()], 1).float()


def patchify(images, p):
    """(b, c, H, W) -> (b, H/p*W/p, p*p*c); inside a patch the order is (row, column, channel)."""
    b, c, h, w = images.shape
    x = images.reshape(b, c, h // p, p, w // p, p).permute(0, 2, 4, 3, 5, 1)
    return x.reshape(b, (h // p) * (w // p), p * p * c)


class SimpleViT(nn.Module):
    """`attention` lists the arguments of each layer's SharedAttention; with kernel 'none' a layer has no attention."""

    def __init__(self, image_size, patch, classes, dim, heads, dim_head, mlp_dim, attention):
        super().__init__()
        self.patch, rows = patch, image_size // patch
        self.embed_norm1 = nn.LayerNorm(3 * patch * patch)
        self.embed = nn.Linear(3 * patch * patch, dim)
        self.embed_norm2 = nn.LayerNorm(dim)
        self.register_buffer("pos", sincos_2d(rows, rows, dim), persistent=False)
        self.attn = nn.ModuleDict({str(i): SharedAttention(dim, heads, dim_head, **choice)
                                   for i, choice in enumerate(attention) if choice["kernel"] != "none"})
        self.ff = nn.ModuleList([FeedForward(dim, mlp_dim) for _ in attention])
        self.head_norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)

    def forward(self, images):
        x = self.embed_norm2(self.embed(self.embed_norm1(patchify(images, self.patch)))) + self.pos
        for i, ff in enumerate(self.ff):
            if str(i) in self.attn:
                x = self.attn[str(i)](x) + x
            x = ff(x) + x
        return self.head(self.head_norm(x.mean(1)))
