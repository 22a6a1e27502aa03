# SPDX-License-Identifier: Apache-2.0
"""Further cases of the Swin transformers: the attention vocabulary in windows, maps that windows do not divide, version 2.

cases() lists (name, source, config, builder). The sizes in `config` are timm's arguments; `attention` says for each block what
stands in place of timm's attention: dict(kind="qkv") nothing, "shared" the class below with the given choices, "key" the
manifold key of reference_models, "none" no attention branch.
"""
import math

import torch
from torch import nn

import reference_models as R


class SharedWindowAttention(nn.Module):
    """Attention in windows with the matrices of `share` (roles Q, K, V, P, W; '-': no PROBE), in the most direct way.

    A matrix and its bias are stored once, under the letter in lower case. WEIGHT is `proj`; where its letter is that of another
    role, the stored tensor acts as it lies, times `tied_weight_scale`, and `proj_bias` is added. An outside PROBE has no bias.
    """

    def __init__(self, old, kernel="dot", probe="none", share="QKV-W", groups=1, layout="interleaved", tied_weight_scale=1.0):
        super().__init__()
        dim, self.heads = old.dim, old.num_heads
        self.role = dict(zip("QKVPW", share.lower()))
        self.kernel, self.probe, self.groups, self.layout = kernel, probe, groups, layout
        self.tied_weight_scale = tied_weight_scale
        letters = sorted({self.role[r] for r in ("QKVP" if probe == "inside" else "QKV")})
        self.weight = nn.ParameterDict({c: nn.Parameter(torch.empty(dim, dim // groups)) for c in letters})
        self.bias = nn.ParameterDict({c: nn.Parameter(torch.empty(dim)) for c in letters})
        if probe == "outside":
            self.weight[self.role["P"]] = nn.Parameter(torch.empty(dim, dim))
        if self.role["W"] in letters:
            self.proj, self.proj_bias = None, nn.Parameter(torch.empty(dim))
        else:
            self.proj = nn.Linear(dim, dim)
        self.relative_position_bias_table = nn.Parameter(old.relative_position_bias_table.detach().clone())
        self.register_buffer("index", old.relative_position_index.detach().clone().reshape(-1), persistent=False)

    def project(self, x, role):
        c = self.role[role]
        weights = {self.role[r]: self.weight[self.role[r]] for r in ("QKVP" if self.probe == "inside" else "QKV")}
        y = R.projected(x, weights, c, self.groups, self.layout) + self.bias[c]
        return y.reshape(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, x, mask=None):
        b, n, dim = x.shape
        q, k, v = (self.project(x, role) for role in "QKV")
        scores = q @ k.transpose(-1, -2)
        if self.kernel == "gaussian":
            scores = scores - 0.5 * k.square().sum(-1).unsqueeze(-2)
        scores = scores * (dim // self.heads) ** -0.5
        scores = scores + self.relative_position_bias_table[self.index].view(n, n, -1).permute(2, 0, 1)
        if mask is not None:
            w = mask.shape[0]
            scores = (scores.view(-1, w, self.heads, n, n) + mask[None, :, None]).view(b, self.heads, n, n)
        out = scores.softmax(-1) @ v
        if self.probe == "inside":
            out = out - self.project(x, "P")
        out = out.transpose(1, 2).reshape(b, n, dim)
        if self.proj is not None:
            out = self.proj(out)
        else:
            out = out @ self.weight[self.role["W"]] * self.tied_weight_scale + self.proj_bias
        return out - x @ self.weight[self.role["P"]].t() if self.probe == "outside" else out


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


class NoAttention(nn.Module):
    def forward(self, x, mask=None):
        return torch.zeros_like(x)


def replace(model, attention):
    """Puts the attention of `attention` into the blocks of a timm Swin, block by block over all stages."""
    blocks = [block for layer in model.layers for block in layer.blocks]
    for block, choice in zip(blocks, attention, strict=True):
        choice = dict(choice)
        kind = choice.pop("kind")
        if kind == "shared":
            block.attn = SharedWindowAttention(block.attn, **choice)
        elif kind == "key":
            version_2 = hasattr(block.attn, "cpb_mlp")
            block.attn = (KeyCosineAttention if version_2 else R.SwinAttention)(block.attn, choice["key"], choice["charts"])
        elif kind == "none":
            block.norm1, block.attn = nn.Identity(), NoAttention()
    return model


SWIN = dict(img_size=56, patch_size=4, embed_dim=24, depths=(2, 2), num_heads=(3, 6), window_size=7, num_classes=10)
QKV, NONE = dict(kind="qkv"), dict(kind="none")


def shared(share="QKVPW", kernel="gaussian", probe="inside", groups=1, layout="interleaved", tied_weight_scale=1.0):
    return dict(kind="shared", kernel=kernel, probe=probe, share=share, groups=groups, layout=layout,
                tied_weight_scale=tied_weight_scale)


def key(kind, charts):
    return dict(kind="key", key=kind, charts=charts)


def cases():
    from timm.models.swin_transformer import SwinTransformer
    from timm.models.swin_transformer_v2 import SwinTransformerV2
    out = []

    def add_timm(name, version, **sizes):
        config = dict(SWIN, **sizes)
        out.append((name, "timm", config, lambda: version(**config)))

    def add(name, *attention):
        config = dict(SWIN, attention=attention * (4 // len(attention)))
        out.append((name, "extra_swin in a timm Swin", config, lambda: replace(SwinTransformer(**SWIN), config["attention"])))

    add_timm("timm_swin_one_window", SwinTransformer, img_size=28)   # 7: the window; 4: smaller than it, after odd merging
    add_timm("timm_swin_padded", SwinTransformer, img_size=48)       # 12: filled up to 14
    add_timm("timm_swin_stages", SwinTransformer, img_size=64, depths=(1, 3, 2), num_heads=(2, 3, 4), window_size=4)
    add_timm("timm_swinv2_small", SwinTransformerV2, img_size=64, window_size=8)
    add_timm("timm_swin_sizes", SwinTransformer, img_size=28, patch_size=2, mlp_ratio=2)
    add_timm("timm_swinv2_sizes", SwinTransformerV2, img_size=32, patch_size=2, window_size=8, mlp_ratio=3)
    add_timm("timm_swinv2_padded", SwinTransformerV2, img_size=48, window_size=5)
    add_timm("timm_swinv2_pretrained_window", SwinTransformerV2, img_size=64, window_size=8, pretrained_window_sizes=(5, 3))
    add("ref_swin_gauss_orig", shared("QKV-W", probe="none"))
    add("ref_swin_dot_probe", shared(kernel="dot"))
    add("ref_swin_residual", shared(probe="outside"))
    add("ref_swin_residual_g2", shared(probe="outside", groups=2))
    add("ref_swin_msf_g2_fused", shared(groups=2, layout="fused-block"))
    add("ref_swin_QKKKW", shared("QKKKW"))
    add("ref_swin_QQQ-Q", shared("QQQ-Q", kernel="dot", probe="none"))
    add("ref_swin_tied", shared("QKKQQ", tied_weight_scale=0.5), shared("QKVPV"))
    add("ref_swin_QKVPW_g3_block", shared(groups=3, layout="block"))
    add("ref_swin_QKKKW_g2", shared("QKKKW", groups=2))
    add("ref_swin_kua_c3", key("kua", 3))
    add("ref_swin_placement", NONE, shared("QKKPW", groups=2), key("simple", 2), QKV)
    v2 = dict(SWIN, img_size=64, window_size=8)
    config = dict(v2, attention=(QKV, key("spatial", 2), key("kua", 3), QKV))
    out.append(("ref_swinv2_key", "extra_swin in a timm Swin V2", config,
                lambda: replace(SwinTransformerV2(**v2), config["attention"])))
    return out
