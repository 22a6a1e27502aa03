# SPDX-License-Identifier: Apache-2.0
"""The Swin transformer: the attention vocabulary and manifold keys in windows, maps that windows do not divide.

The sizes in a configuration are timm's arguments. `attention` says for each block what stands in place of timm's attention:
dict(kind="qkv") nothing, "shared" the class below with the given choices, "key" the manifold key of reference_models, "none" no
attention branch. `variant` is the reference's word for one attention in every block.
"""
import torch
from torch import nn

import reference_models as R

from choices import ATTENTION_KEYS, TIMM, attention_covers, demand_none, key_covers, key_of_kind, taken
from large import presets_of_timm

NAME, FAMILY = "swin", "swin"
PARTS = "Swin SwinPatchEmbed SwinPatchMerging SwinStage SwinHead FixedTable Mlp Linear LayerNorm Conv2d NormPlace::kBefore"
SIZES_OF_OPTIONS = dict(patch=("patch_size", 4), classes=("num_classes", 1000), dim=("embed_dim", 96),
                        depths=("depths", (2, 2, 6, 2)), heads=("num_heads", (3, 6, 12, 24)), mlp_ratio=("mlp_ratio", 4),
                        attention=("attention", None))
OPTIONS = ("SwinOptions", dict(SIZES_OF_OPTIONS, image_size=("img_size", 224), window=("window_size", 7)))
GIVEN = {"SwinStage": "WindowAttentionOptions.dim WindowAttentionOptions.heads WindowAttentionOptions.window"}
EXCEPTIONS = {
    "SwinBlock": "the base of both Swins' blocks",
    "SwinTrunk": "the base of both Swins",
    "WindowAttention": "the base of all attention in windows",
    "BiasedWindowAttention": "the base of attention in windows with a table of biases",
}
FEATURES = r"patch_embed|layers\.\d+(\.blocks\.\d+(\.attn)?|\.downsample\.(norm|reduction))?|norm"
GRADIENTS = (r"patch_embed\.proj\.weight|layers\.0\.blocks\.1\.attn\..*|layers\.1\.(downsample\..*|blocks\.0\.mlp\.fc2\.bias)"
             r"|norm\.weight|head\.fc\.weight")
# What a kind of attention is in C++, and what it says in a trial: nothing, or one section.
PART_OF_KIND = dict(qkv="WindowQkvAttention", shared="WindowSharedAttention", key="WindowKeyAttention", none="Kernel::kNone")
KEYS_OF_KIND = dict(
    qkv=lambda words: {},
    none=lambda words: dict(attention=dict(kernel="none")),
    shared=lambda words: dict(attention=taken(words, ATTENTION_KEYS)),
    key=lambda words: dict(key=key_of_kind(words, "key")))
MEAN_SHIFTS = {"msf": dict(kernel="gaussian", probe="inside"), "msf-g2": dict(kernel="gaussian", probe="inside", groups=2)}


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


class NoAttention(nn.Module):
    def forward(self, x, mask=None):
        return torch.zeros_like(x)


def replace(model, attention, key_attention=R.SwinAttention):
    """Puts the attention of `attention` into the blocks of a timm Swin, block by block over all stages."""
    blocks = [block for layer in model.layers for block in layer.blocks]
    for block, choice in zip(blocks, attention, strict=True):
        choice = dict(choice)
        kind = choice.pop("kind")
        if kind == "shared":
            block.attn = SharedWindowAttention(block.attn, **choice)
        elif kind == "key":
            block.attn = key_attention(block.attn, choice["key"], choice["charts"])
        elif kind == "none":
            block.norm1, block.attn = nn.Identity(), NoAttention()
    return model


SIZES = dict(img_size=56, patch_size=4, embed_dim=24, depths=(2, 2), num_heads=(3, 6), window_size=7, num_classes=10)
QKV, NONE = dict(kind="qkv"), dict(kind="none")


def shared(share="QKVPW", kernel="gaussian", probe="inside", groups=1, layout="interleaved", tied_weight_scale=1.0):
    return dict(kind="shared", kernel=kernel, probe=probe, share=share, groups=groups, layout=layout,
                tied_weight_scale=tied_weight_scale)


def key(kind, charts):
    return dict(kind="key", key=kind, charts=charts)


def choice_of_variant(variant, charts):
    if not variant.startswith("msf"):
        return key(variant, charts)
    return shared(groups=2 if variant == "msf-g2" else 1)


def block_covers(choice, parts=PART_OF_KIND):
    found = [parts[choice["kind"]]]
    if choice["kind"] == "shared":
        found += attention_covers(choice)
    if choice["kind"] == "key":
        found += key_covers(choice["key"], choice["charts"])
    return found


def covers(config):
    blocks = config.get("attention", [QKV])
    if "variant" in config:
        blocks = [choice_of_variant(config["variant"], config["charts"])]
    return [name for choice in blocks for name in block_covers(choice)]


def sizes_keys(words):
    return taken(words, dict(TIMM, depths="stage_depths", num_heads="stage_heads", window_size="window"))


def block_keys(block):
    words = dict(block)
    found = KEYS_OF_KIND[words.pop("kind")](words)
    demand_none(words)
    return found


def blocks_keys(blocks):
    """Block by block under each section that one of them has."""
    found = [block_keys(block) for block in blocks]
    return {name: [block.get(name, {}) for block in found] for name in {name for block in found for name in block}}


def variant_keys(words):
    if words["variant"] not in MEAN_SHIFTS:
        return dict(key=key_of_kind(words, "variant"))
    del words["charts"]  # of keys alone
    return dict(attention=MEAN_SHIFTS[words.pop("variant")])


def keys(words):
    if "variant" in words:
        return dict(sizes_keys(words), **variant_keys(words))
    return dict(sizes_keys(words), **blocks_keys(words.pop("attention", ())))


def cases():
    from timm.models.swin_transformer import SwinTransformer
    out = []

    def add_timm(name, **sizes):
        config = dict(SIZES, **sizes)
        out.append((name, "timm", config, lambda: SwinTransformer(**config)))

    def add_variant(variant):
        out.append(("ref_swin_" + variant, "reference_models in a timm Swin", dict(SIZES, variant=variant, charts=4),
                    lambda: R.swin_replace(SwinTransformer(**SIZES), variant, charts=4)))

    def add(name, *attention):
        attention = attention * (4 // len(attention))
        out.append((name, "families/swin.py in a timm Swin", dict(SIZES, attention=attention),
                    lambda: replace(SwinTransformer(**SIZES), attention)))

    add_timm("timm_swin_small_case")
    add_timm("timm_swin_one_window", img_size=28)   # 7: the window; 4: smaller than it, after odd merging
    add_timm("timm_swin_padded", img_size=48)       # 12: filled up to 14
    add_timm("timm_swin_stages", img_size=64, depths=(1, 3, 2), num_heads=(2, 3, 4), window_size=4)
    add_timm("timm_swin_sizes", img_size=28, patch_size=2, mlp_ratio=2)
    for variant in ("msf", "msf-g2", "spatial", "kua", "simple", "vanilla"):
        add_variant(variant)
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
    return out


def large_cases():
    return presets_of_timm("swin_tiny_patch4_window7_224", "swin_small_patch4_window7_224")
