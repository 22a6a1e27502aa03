# SPDX-License-Identifier: Apache-2.0
"""Further cases of the vision transformers with a class token: readings of the manifold key, its place, timm without qkv bias.

cases() lists (name, source, config, builder). The sizes in `config` are those of the model's class; `keys` says for each layer
what makes the key: None the linear layer, otherwise the arguments of `Key` but for dim and tokens.
"""
import torch
from torch import nn

import reference_models as R


class Key(nn.Module):
    """A manifold key in the most direct way: the convolution is a convolution, every mean is taken where the paper takes it.

    method        spatialk, kua, simplek, vanillak
    broadcasting  none; all: the mean over charts and tokens; charts: the mean over the charts at each token
    order         chart: the convolution's channels are chart after chart; plain: token after token
    """

    def __init__(self, dim, tokens, method, charts, broadcasting, order):
        super().__init__()
        self.sizes, self.method, self.broadcasting, self.order = (tokens, charts, dim), method, broadcasting, order
        out, groups = (tokens, 1) if method == "simplek" else (charts * tokens, charts)
        self.k = nn.Linear(dim, charts * dim, bias=False)
        self.gamma = nn.Parameter(torch.ones(charts * dim))
        self.spatial = nn.Conv1d(charts * tokens, out, 1, groups=groups, bias=False)
        if broadcasting != "none":
            self.gamma_cb = nn.Parameter(torch.ones(dim))
        if method in ("spatialk", "kua"):
            self.to_out = nn.Linear(charts * dim, dim, bias=False)

    def forward(self, x):
        n, h, d = self.sizes
        x = (self.gamma * self.k(x)).view(-1, n, h, d)
        if self.order == "chart":
            x = x.transpose(1, 2)
        x = self.spatial(x.reshape(-1, h * n, d))
        if self.method == "simplek":
            return x
        x = x.view(-1, h, n, d).transpose(1, 2) if self.order == "chart" else x.view(-1, n, h, d)  # by token, then chart
        if self.broadcasting != "none":
            over = {"all": (1, 2), "charts": 2}[self.broadcasting]
            x = 0.5 * (x + self.gamma_cb * x.mean(over, keepdim=True))
        return x.mean(2) if self.method == "vanillak" else self.to_out(x.flatten(2))


SIZES = dict(image=32, patch=8, classes=10, dim=48, heads=3, mlp=192)


def key_vit(keys, **sizes):
    """The reference's ViT, the key of each layer replaced."""
    model = R.KeyViT(depth=len(keys), **sizes)
    for attention, choice in zip(model.attn, keys, strict=True):
        if choice is not None:
            attention.key = Key(sizes["dim"], model.pos.shape[1], **choice)
    return model


def key(method, charts=4, broadcasting="none", order="chart"):
    return dict(method=method, charts=charts, broadcasting=broadcasting, order=order)


def cases():
    from timm.models.vision_transformer import VisionTransformer
    out = []

    def add(name, *keys, **sizes):
        config = dict(SIZES, keys=keys * (2 // min(len(keys), 2)), **sizes)
        out.append((name, "extra_vit in reference_models", config, lambda: key_vit(**config)))

    def add_timm(name, **sizes):
        config = dict(dict(img_size=32, patch_size=8, embed_dim=48, depth=2, num_heads=3, num_classes=10), **sizes)
        out.append((name, "timm", config, lambda: VisionTransformer(**config)))

    add("ref_keyvit_spatialk_plain", key("spatialk", order="plain"))
    add("ref_keyvit_kua_plain", key("kua", broadcasting="all", order="plain"))
    add("ref_keyvit_simplek_plain", key("simplek", order="plain"))
    add("ref_keyvit_vanillak_plain", key("vanillak", broadcasting="all", order="plain"))
    add("ref_keyvit_vanillak_plain_charts", key("vanillak", broadcasting="charts", order="plain"))
    add("ref_keyvit_kua_over_charts", key("kua", broadcasting="charts"))
    add("ref_keyvit_vanillak_over_charts", key("vanillak", broadcasting="charts"))
    add("ref_keyvit_kua_plain_charts", key("kua", broadcasting="charts", order="plain"))
    add("ref_keyvit_one_chart", key("spatialk", charts=1), key("vanillak", charts=1, broadcasting="all"))
    add("ref_keyvit_three_charts", key("kua", charts=3, broadcasting="all"), key("simplek", charts=3))
    add("ref_keyvit_placement", None, key("vanillak", charts=8, broadcasting="all"), None, key("spatialk", charts=2))
    add_timm("timm_vit_no_qkv_bias", qkv_bias=False)
    add_timm("timm_vit_sizes", img_size=48, patch_size=16, embed_dim=24, depth=1, num_heads=4, num_classes=7, mlp_ratio=2)
    return out
