# SPDX-License-Identifier: Apache-2.0
"""XCiT: timm's of both patches and norms, what its ablations leave out or replace, non-linear embeddings.

A configuration holds timm's arguments, `patch_projection` ("convolutions" or "linear") and, for each block, what differs from
XCiT's: the words of DEFAULT. An embedding is a dict of widths, shared, code_size, codes_over_blocks and bias; in place of `blocks`
a configuration may have one for all, in the reference's words: a kind, a width, a size of codes, whether blocks share them.
"""
import torch
import torch.nn.functional as F
from torch import nn

import reference_models as R

from choices import TIMM
from large import presets_of_timm

NAME, FAMILY = "xcit", "xcit"
WORDS = dict(TIMM, cls_attn_layers="class_blocks", patch_projection="patches", codes_over_blocks="codes")
VALUES = dict(codes={True: "model", False: "block"})
FIELDS = dict(patches="patch_projection", block="blocks", embedding="blocks", lpi="local_patch_interaction", width="widths",
              codes="codes_over_blocks")
GIVEN = {
    "CrossCovariance": "CrossCovarianceOptions.dim CrossCovarianceOptions.heads CrossCovarianceOptions.choice",
    "ClassAttentionBlock": "ClassAttentionBlockOptions.dim ClassAttentionBlockOptions.heads ClassAttentionBlockOptions.mlp_dim",
    "XcitBlock": "XcitBlockOptions.dim XcitBlockOptions.heads XcitBlockOptions.mlp_dim XcitBlockOptions.choice",
    "NonLinearQkv": "XcitChoice.embedding QkvOptions.embedding",
    "HalvingConv": "Conv2dOptions.bias",
    "LocalPatchInteraction": "Conv2dOptions.padding Conv2dOptions.groups",
}
PASSED_ON = {
    "EmbeddingChoice.code_size": "QkvOptions.codes XcitBlockOptions.codes CrossCovarianceOptions.codes",
    "XcitOptions.tokens_norm": "ClassAttentionBlockOptions.tokens_norm",
}
EXCEPTIONS = {
    "EmbeddingChoice.code_deviation": "says how weights start, which ground truth replaces",
}
FEATURES = r"patch_embed\.proj|blocks\.\d+(\.attn(\.qkv)?|\.local_mp|\.mlp)?|cls_attn_blocks\.\d+(\.attn|\.mlp)?|norm"
GRADIENTS = (r"cls_token|patch_embed\.proj\.0\..*|pos_embed\.token_projection\.weight|blocks\.0\..*"
             r"|cls_attn_blocks\.(0\.attn\.q\.weight|1\.gamma2)|head\.weight")
CONVOLUTION_GAIN = 1.6

# What a block says where nothing differs from XCiT's.
DEFAULT = dict(attention="channels", lpi=True, l2_norm=True, learned_temperature=True, temperature=1.0, embedding=None)


class Codes(nn.Module):
    """One vector for each role: query, key, value."""

    def __init__(self, size):
        super().__init__()
        self.code = nn.Parameter(torch.randn(3, size) * 0.02)


class Embedding(nn.Module):
    """Each role goes through its layers, one after the other; a layer that is shared exists once."""

    def __init__(self, dim, codes, widths=(), shared=(False,), code_size=0, codes_over_blocks=True, bias=True):
        super().__init__()
        self.unregistered = (codes,)                # its owner registers it
        sizes = [dim + code_size, *widths, dim]
        self.names = [f"fc{i + 1}" for i in range(len(shared))]
        for name, once, size_in, size_out in zip(self.names, shared, sizes[:-1], sizes[1:], strict=True):
            layers = [nn.Linear(size_in, size_out, bias=bias) for _ in range(1 if once else 3)]
            self.add_module(name, nn.ModuleList(layers))

    def role(self, x, r):
        codes, = self.unregistered
        y = x if codes is None else torch.cat([x, codes.code[r].expand(*x.shape[:2], -1)], -1)
        for name in self.names:
            layers = getattr(self, name)
            y = layers[r % len(layers)](y if name == "fc1" else F.relu(y))
        return y

    def forward(self, x):
        return torch.cat([self.role(x, r) for r in range(3)], -1)


class Attention(nn.Module):
    """Over channels or over tokens, in the most direct way."""

    def __init__(self, old, over_channels, l2_norm, learned_temperature, temperature):
        super().__init__()
        self.heads, self.qkv, self.proj = old.num_heads, old.qkv, old.proj
        self.over_channels, self.l2_norm = over_channels, l2_norm
        if over_channels and learned_temperature:
            self.temperature = nn.Parameter(torch.full((self.heads, 1, 1), temperature))
        else:
            self.temperature = temperature

    def forward(self, x):
        b, n, dim = x.shape
        q, k, v = (t.reshape(b, n, self.heads, -1).permute(0, 2, 3, 1) for t in self.qkv(x).chunk(3, -1))  # (b, heads, d, n)
        if self.over_channels:
            if self.l2_norm:
                q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
            y = (q @ k.mT * self.temperature).softmax(-1) @ v
        else:
            weights = (q.mT @ k * (dim // self.heads) ** -0.5).softmax(-1)
            y = v @ weights.mT
        return self.proj(y.permute(0, 3, 1, 2).reshape(b, n, dim))


class Block(nn.Module):
    """The branches that are there, in XCiT's order: attention, local patch interaction, MLP."""

    def __init__(self, old, attention, lpi):
        super().__init__()
        if attention is not None:
            self.norm1, self.attn, self.gamma1 = old.norm1, attention, old.gamma1
        if lpi:
            self.norm3, self.local_mp, self.gamma3 = old.norm3, old.local_mp, old.gamma3
        self.norm2, self.mlp, self.gamma2 = old.norm2, old.mlp, old.gamma2

    def forward(self, x, rows, columns):
        if hasattr(self, "attn"):
            x = x + self.gamma1 * self.attn(self.norm1(x))
        if hasattr(self, "local_mp"):
            x = x + self.gamma3 * self.local_mp(self.norm3(x), rows, columns)
        return x + self.gamma2 * self.mlp(self.norm2(x))


class LinearPatches(nn.Module):
    def __init__(self, dim, patch):
        super().__init__()
        self.proj = nn.Conv2d(3, dim, patch, patch)

    def forward(self, images):
        x = self.proj(images)
        return x.flatten(2).mT, x.shape[2:]


def build(patch_projection, blocks, **sizes):
    """A timm XCiT with its blocks replaced."""
    from timm.models.xcit import Xcit
    model = Xcit(img_size=64, **sizes)
    if patch_projection == "linear":
        model.patch_embed = LinearPatches(sizes["embed_dim"], sizes["patch_size"])
    for i, choice in enumerate(blocks):
        choice = dict(DEFAULT, **choice)
        old, attention = model.blocks[i], None
        if choice["attention"] != "none":
            attention = Attention(old.attn, choice["attention"] == "channels", choice["l2_norm"], choice["learned_temperature"],
                                  choice["temperature"])
            embedding = choice["embedding"]
            if embedding:
                codes = None
                if embedding["code_size"]:
                    owner = model if embedding["codes_over_blocks"] else attention
                    if not hasattr(owner, "codes"):
                        owner.codes = Codes(embedding["code_size"])
                    codes = owner.codes
                attention.qkv = Embedding(sizes["embed_dim"], codes, **embedding)
        model.blocks[i] = Block(old, attention, choice["lpi"])
    return model


SIZES = dict(embed_dim=32, depth=2, num_heads=4, num_classes=10, eta=1.0, patch_size=8, tokens_norm=True)


def embedding(widths, shared, code_size=0, codes_over_blocks=True, bias=True, **choice):
    """`shared`: a digit for each layer, 1 where the roles share it."""
    return dict(choice, embedding=dict(widths=widths, shared=[digit == "1" for digit in shared], code_size=code_size,
                                       codes_over_blocks=codes_over_blocks, bias=bias))


def embedding_of(words):
    """Its kind follows from what is shared. Without a hidden layer no widths may be given."""
    if not words:
        return {}
    shared = [str(layer) for layer, is_shared in enumerate(words["shared"], 1) if is_shared]
    words = {word: value for word, value in words.items() if value != []}
    return dict(words, kind="sne", depth=len(words["shared"]), shared=",".join(shared) or "none")


def embedding_of_words(kind, width, code_size=0, codes_over_blocks=True):
    kinds = dict(sne="sne", psne="p-sne", fsne="f-sne")
    return dict(kind=kinds[kind], width=width, code_size=code_size, codes_over_blocks=codes_over_blocks)


def spelled_out(words):
    if "embedding" in words:
        words["embedding"] = embedding_of_words(*words["embedding"])
    blocks = [dict(block) for block in words.pop("blocks", ())]
    if blocks:
        words["embedding"] = [embedding_of(block.pop("embedding", None)) for block in blocks]
        words["block"] = blocks
    return words


def cases():
    from timm.models.xcit import Xcit
    out = []

    def add_timm(name, image, **sizes):
        out.append((name, "timm", dict(sizes, input_size=image), lambda: Xcit(img_size=64, **sizes)))

    def add_words(name, *words):
        out.append((name, "reference_models in a timm XCiT", dict(SIZES, embedding=words),
                    lambda: R.xcit_replace(Xcit(img_size=64, **SIZES), *words)))

    def add(name, *blocks, patch_projection="convolutions", **sizes):
        config = dict(SIZES, **sizes, patch_projection=patch_projection, blocks=list(blocks) * max(1, 2 // len(blocks)))
        config["depth"] = len(config["blocks"])
        out.append((name, "families/xcit.py in a timm XCiT", config, lambda: build(**config)))

    for patch, image, tokens_norm in ((16, 64, False), (8, 64, True), (8, 48, True)):
        add_timm(f"timm_xcit_small_case_p{patch}_{image}", image, **dict(SIZES, patch_size=patch, tokens_norm=tokens_norm))
    add_timm("timm_xcit_sizes", 64,
             **dict(SIZES, patch_size=16, embed_dim=48, num_heads=3, num_classes=7, mlp_ratio=2, cls_attn_layers=3))
    add_words("ref_xcit_sne", "sne", 16)
    add_words("ref_xcit_psne", "psne", 24)
    add_words("ref_xcit_fsne8", "fsne", 32, 8)
    add_words("ref_xcit_fsne8_unshared", "fsne", 32, 8, False)
    plain = {}
    add("ref_xcit_no_lpi", dict(lpi=False))
    add("ref_xcit_no_attention", dict(attention="none"))
    add("ref_xcit_tokens", dict(attention="tokens"))
    add("ref_xcit_no_l2", dict(l2_norm=False))
    add("ref_xcit_fixed_temperature", dict(learned_temperature=False))
    add("ref_xcit_fixed_temperature_2", dict(learned_temperature=False, temperature=2.5))
    add("ref_xcit_linear_patches", plain, patch_projection="linear")
    add("ref_xcit_linear_patches_16", plain, patch_projection="linear", patch_size=16, tokens_norm=False)
    add("ref_xcit_sne_1", embedding([], "0"))
    add("ref_xcit_sne_3", embedding([16, 24], "000"))
    add("ref_xcit_sne_4", embedding([16, 24, 20], "0000"))
    add("ref_xcit_shared_first", embedding([24], "10", 8))
    add("ref_xcit_shared_last_two", embedding([16, 24], "011"))
    add("ref_xcit_shared_ends", embedding([16, 24], "101", 4))
    add("ref_xcit_shared_one_layer", embedding([], "1", 8))
    add("ref_xcit_fsne_3_own_codes", embedding([16, 24], "111", 8, codes_over_blocks=False))
    add("ref_xcit_no_bias", embedding([16], "00", bias=False), embedding([16], "01", bias=False))
    add("ref_xcit_no_bias_codes", embedding([16], "11", 8, bias=False), embedding([16], "10", 8, bias=False))
    add("ref_xcit_tokens_fsne", embedding([16], "11", 8, attention="tokens"))
    add("ref_xcit_placement", embedding([16], "11", 8), plain, embedding([16], "00", lpi=False), dict(attention="none"),
        embedding([16], "10", 8), dict(attention="tokens"), embedding([24], "11", 4, codes_over_blocks=False))
    return out


def large_cases():
    return presets_of_timm("xcit_nano_12_p16_224", "xcit_tiny_12_p8_224", "xcit_small_12_p16_224", "xcit_tiny_24_p16_224",
                           "xcit_tiny_12_p16_224", "xcit_small_24_p8_224", "xcit_medium_24_p16_224", "xcit_large_24_p8_224")
