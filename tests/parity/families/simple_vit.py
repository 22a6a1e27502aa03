# SPDX-License-Identifier: Apache-2.0
"""The simple ViT: the attention of each layer."""
import reference_models as R

from large import preset

NAME, FAMILY = "msf", "simple-vit"
PASSED_ON = {"SimpleVitOptions.dim_head": "AttentionOptions.dim_head"}
FEATURES = r"(attn|ff)\.\d+"
GRADIENTS = r"embed\.weight|attn\.(0|11)\..*|ff\.1\.fc1\.weight|head_norm\.bias|head\.weight"

SIZES = dict(image_size=64, patch=16, classes=10, dim=96, heads=3, dim_head=32, mlp_dim=192)


def attention(share, kernel=None, probe=None, groups=1, layout="interleaved", tied_weight_scale=1.0):
    """A layer's choices, complete; unless said, a PROBE means the mean shift and none the original transformer."""
    mean_shift = share[3] != "-"
    return dict(kernel=kernel or ("gaussian" if mean_shift else "dot"), probe=probe or ("inside" if mean_shift else "none"),
                share=share, groups=groups, layout=layout, tied_weight_scale=tied_weight_scale)


def cases():
    out = []

    def add(name, *layers, **sizes):
        layers = list(layers) * (2 // min(len(layers), 2))
        config = dict(SIZES, **sizes, attention=layers)
        out.append(("ref_msf_" + name, "reference_models", dict(config, depth=len(layers)), lambda: R.SimpleViT(**config)))

    for share in ("QKVPW", "QQQQQ", "QKKQQ", "QKKKQ", "QKKKW", "QKKPP", "QKVPP", "QKVPQ", "QQVVV",
                  "QKV-W", "QKK-Q", "QQQ-Q", "QKV-V"):
        add(share, attention(share))
    for share in ("QKVPW", "QKV-W"):
        add(f"{share}_g2_interleave", attention(share, groups=2))
        add(f"{share}_g2_block", attention(share, groups=2, layout="block"))
        add(f"{share}_g2_fused", attention(share, groups=2, layout="fused-block"))
    add("QKKPW_g4_fused", attention("QKKPW", groups=4, layout="fused-block"))
    add("QKKKW_g2_interleave", attention("QKKKW", groups=2))
    add("QKVPW_g3_interleave", attention("QKVPW", groups=3))
    add("QKKPW_g4_block", attention("QKKPW", groups=4, layout="block"))
    add("gauss_orig", attention("QKV-W", kernel="gaussian"))
    add("dot_probe", attention("QKVPW", kernel="dot"))
    add("residual", attention("QKVPW", probe="outside"))
    add("residual_g2", attention("QKVPW", probe="outside", groups=2))
    add("residual_QKKPQ", attention("QKKPQ", probe="outside"))
    add("tied_scale", attention("QKK-Q", tied_weight_scale=32 ** -0.5), attention("QKKQQ", tied_weight_scale=0.5))
    add("sizes", attention("QKVPW"), patch=8, image_size=32, classes=7, dim=64, heads=2, dim_head=24, mlp_dim=96)
    add("placement", attention("QKV-W"), attention("QKVPW"), attention("QKV-W", kernel="none"), attention("QKKKW", groups=2))
    return out


def large_cases():
    """ViT-S and ViT-B of the MSF paper, ViT-S also with what it puts into it."""
    def simple_vit(share="QKV-W", dim=384, heads=6):
        return R.SimpleViT(image_size=224, patch=16, classes=1000, dim=dim, heads=heads, dim_head=64, mlp_dim=4 * dim,
                           attention=[attention(share)] * 12)

    mean_shift = dict(kernel="gaussian", probe="inside", share="QKVPW")
    return [
        ("ref_msf_simple-vit-s", "reference_models", preset("simple-vit-s"), simple_vit),
        ("ref_msf_simple-vit-s_mean_shift", "reference_models", preset("simple-vit-s", attention=mean_shift),
         lambda: simple_vit("QKVPW")),
        ("ref_msf_simple-vit-b", "reference_models", preset("simple-vit-b"), lambda: simple_vit(dim=768, heads=12)),
    ]
