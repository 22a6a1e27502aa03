# SPDX-License-Identifier: Apache-2.0
"""The Swin transformer: the attention vocabulary and manifold keys in windows, maps that windows do not divide.

The sizes in a configuration are timm's arguments. `attention` says for each block what stands in place of timm's attention:
dict(kind="qkv") nothing, "shared" the class below with the given choices, "key" the manifold key of reference_models, "none" no
attention branch. `variant` is the reference's word for one attention in every block.
"""
import torch
from torch import nn

import reference_models as R

from choices import TIMM, key_of_kind
from large import presets_of_timm

NAME, FAMILY = "swin", "swin"
WORDS = dict(TIMM, depths="stage_depths", num_heads="stage_heads", window_size="window", pretrained_window_sizes="pretrained_window")
FIELDS = dict(stage_depths="depths", stage_heads="heads", key="attention")
HAS_OWN_ATTENTION = True  # where a trial changes nothing of it
GIVEN = {
    "SwinStage": "WindowAttentionOptions.dim WindowAttentionOptions.heads WindowAttentionOptions.window",
    "Swin": "NormPlace::kBefore",
}
EXCEPTIONS = {
    "SwinBlock": "the base of both Swins' blocks",
    "SwinTrunk": "the base of both Swins",
    "WindowAttention": "the base of all attention in windows",
    "BiasedWindowAttention": "the base of attention in windows with a table of biases",
}
FEATURES = r"patch_embed|layers\.\d+(\.blocks\.\d+(\.attn)?|\.downsample\.(norm|reduction))?|norm"
GRADIENTS = (r"patch_embed\.proj\.weight|layers\.0\.blocks\.1\.attn\..*|layers\.1\.(downsample\..*|blocks\.0\.mlp\.fc2\.bias)"
             r"|norm\.weight|head\.fc\.weight")
# What a kind of attention says in a trial: nothing, or one section.
SECTION_OF_KIND = dict(
    qkv=lambda: {},
    none=lambda: dict(attention=dict(kernel="none")),
    shared=lambda **choice: dict(attention=choice),
    key=lambda key, charts: dict(key=key_of_kind(key, charts)))
# The reference's words for one attention in every block.
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


def spelled_out(words):
    variant, charts, blocks = words.pop("variant", None), words.pop("charts", None), words.pop("attention", ())
    if variant in MEAN_SHIFTS:
        return dict(words, attention=MEAN_SHIFTS[variant])
    if variant:
        return dict(words, key=key_of_kind(variant, charts))
    found = [SECTION_OF_KIND[block["kind"]](**{word: block[word] for word in block if word != "kind"}) for block in blocks]
    names = {name for section in found for name in section}
    return dict(words, **{name: [section.get(name, {}) for section in found] for name in names})


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
