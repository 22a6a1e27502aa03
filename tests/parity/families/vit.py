# SPDX-License-Identifier: Apache-2.0
"""The vision transformer with a class token, timm's."""
from choices import TIMM
from large import presets_of_timm

NAME, FAMILY, WORDS = "vit", "vit", TIMM
FIELDS = dict(qkv_bias="has_qkv_bias")
PASSED_ON = {"VitOptions.has_qkv_bias": "QkvOptions.bias"}
FEATURES = r"patch_embed|blocks\.\d+|norm"
GRADIENTS = (r"cls_token|pos_embed|patch_embed\.proj\.weight|blocks\.0\.(norm1\.weight|attn\..*)|blocks\.1\.mlp\.fc1\.weight"
             r"|norm\.bias|head\.weight")


def cases():
    from timm.models.vision_transformer import VisionTransformer
    out = []

    def add(name, **sizes):
        config = dict(dict(img_size=32, patch_size=8, embed_dim=48, depth=2, num_heads=3, num_classes=10), **sizes)
        out.append((name, "timm", config, lambda: VisionTransformer(**config)))

    add("timm_vit_small_case")
    add("timm_vit_no_qkv_bias", qkv_bias=False)
    add("timm_vit_sizes", img_size=48, patch_size=16, embed_dim=24, depth=1, num_heads=4, num_classes=7, mlp_ratio=2)
    return out


def large_cases():
    return presets_of_timm("vit_tiny_patch16_224", "vit_small_patch16_224", "vit_base_patch16_224")
