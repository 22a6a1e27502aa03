# SPDX-License-Identifier: Apache-2.0
"""Cases of the simple ViT: the attention of each layer. cases() lists (name, source, config, builder)."""
import reference_models as R

SIZES = dict(image_size=64, patch=16, classes=10, dim=96, heads=3, dim_head=32, mlp_dim=192)


def attention(share, kernel=None, probe=None, groups=1, layout="interleaved", tied_weight_scale=1.0):
    """A layer's choices, complete; unless said, a PROBE means the mean shift and none the original transformer."""
    mean_shift = share[3] != "-"
    return dict(kernel=kernel or ("gaussian" if mean_shift else "dot"), probe=probe or ("inside" if mean_shift else "none"),
                share=share, groups=groups, layout=layout, tied_weight_scale=tied_weight_scale)


def simple_vit(depth, **config):
    return R.SimpleViT(**config)


def cases():
    out = []

    def add(name, *layers, **sizes):
        layers = list(layers) * (2 // min(len(layers), 2))
        config = dict(SIZES, **sizes, depth=len(layers), attention=layers)
        out.append(("ref_msf_" + name, "reference_models", config, lambda: simple_vit(**config)))

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
