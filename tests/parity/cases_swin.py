# SPDX-License-Identifier: Apache-2.0
"""Cases of the Swin transformer: timm's, and the mean shift or a manifold key in every window."""
import reference_models as R

SIZES = dict(img_size=56, patch_size=4, embed_dim=24, depths=(2, 2), num_heads=(3, 6), window_size=7, num_classes=10)


def cases():
    from timm.models.swin_transformer import SwinTransformer
    out = [("timm_swin_small_case", "timm", SIZES, lambda: SwinTransformer(**SIZES))]
    for variant in ("msf", "msf-g2", "spatial", "kua", "simple", "vanilla"):
        config = dict(SIZES, variant=variant, charts=4)
        out.append((f"ref_swin_{variant}", "reference_models in a timm Swin", config,
                    lambda variant=variant: R.swin_replace(SwinTransformer(**SIZES), variant, charts=4)))
    return out
