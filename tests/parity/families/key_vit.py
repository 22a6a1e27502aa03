# SPDX-License-Identifier: Apache-2.0
"""The vision transformer of the manifold key: each kind of key in every layer, its readings, its place.

The sizes in a configuration are those of the reference's class. `kind` is its word for the key of every layer; `keys` says for each
what makes it: None the linear layer, otherwise the arguments of `Key` but for dim and tokens.
"""
import torch
from torch import nn

import reference_models as R

from choices import key_of_kind
from large import preset

NAME, FAMILY = "keyvit", "key-vit"
WORDS = dict(mlp="mlp_dim", keys="key", order="chart_order")
VALUES = dict(chart_order=dict(chart="chart-major", plain="plain-reshape"))
FIELDS = dict(key="keys")
FEATURES = r"attn\.\d+(\.key)?|ff\.\d+|norm"
GRADIENTS = (r"cls|pos|embed\.weight|attn\.0\.(norm\.weight|to_q\.weight|key\..*)|attn\.11\.key\..*|ff\.1\.fc1\.weight"
             r"|head\.weight")


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


def key_vit(keys, **sizes):
    """The reference's ViT, the key of each layer replaced."""
    model = R.KeyViT(depth=len(keys), **sizes)
    for attention, choice in zip(model.attn, keys, strict=True):
        if choice is not None:
            attention.key = Key(sizes["dim"], model.pos.shape[1], **choice)
    return model


def key(method, charts=4, broadcasting="none", order="chart"):
    return dict(method=method, charts=charts, broadcasting=broadcasting, order=order)


def spelled_out(words):
    if "keys" in words:
        return dict(words, depth=len(words["keys"]))
    key = key_of_kind(words.pop("kind"), words.pop("charts"))
    return dict(words, key=key)


def cases():
    out = []

    def add_kind(kind):
        config = dict(image=32, patch=8, classes=10, dim=48, depth=2, heads=3, kind=kind, charts=4)
        out.append(("ref_keyvit_" + kind, "reference_models", config, lambda: R.KeyViT(**config)))

    def add(name, *layers, **sizes):
        layers = layers * (2 // min(len(layers), 2))
        config = dict(dict(image=32, patch=8, classes=10, dim=48, heads=3, mlp=192), keys=layers, **sizes)
        out.append((name, "Key in reference_models", config, lambda: key_vit(**config)))

    for kind in ("none", "spatial", "kua", "simple", "vanilla", "vanilla_nocb"):
        add_kind(kind)
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
    return out


def large_cases():
    """ViT-S and ViT-B of the manifold key paper, ViT-S also with its key."""
    return [
        ("ref_keyvit_key-vit-s", "reference_models", preset("key-vit-s"), lambda: R.KeyViT(kind="none")),
        ("ref_keyvit_key-vit-s_spatialk", "reference_models", preset("key-vit-s", key=dict(method="spatialk")),
         lambda: R.KeyViT(kind="spatial", charts=8)),
        ("ref_keyvit_key-vit-b", "reference_models", preset("key-vit-b"), lambda: R.KeyViT(dim=768, heads=12, kind="none")),
    ]
