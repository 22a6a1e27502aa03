# SPDX-License-Identifier: Apache-2.0
"""Cases of the vision transformers with a class token: timm's, and the reference's with each kind of key in every layer."""
import reference_models as R

SIZES = dict(image=32, patch=8, classes=10, dim=48, depth=2, heads=3)
TIMM = dict(img_size=32, patch_size=8, embed_dim=48, depth=2, num_heads=3, num_classes=10)


def cases():
    from timm.models.vision_transformer import VisionTransformer
    out = [("timm_vit_small_case", "timm", TIMM, lambda: VisionTransformer(**TIMM))]
    for kind in ("none", "spatial", "kua", "simple", "vanilla", "vanilla_nocb"):
        config = dict(SIZES, kind=kind, charts=4)
        out.append((f"ref_keyvit_{kind}", "reference_models", config, lambda config=config: R.KeyViT(**config)))
    return out
