# SPDX-License-Identifier: Apache-2.0
"""Cases of XCiT: timm's of both patches and norms, and the three non-linear embeddings of the SNE paper."""
import reference_models as R

SIZES = dict(embed_dim=32, depth=2, num_heads=4, num_classes=10, eta=1.0)


def cases():
    from timm.models.xcit import Xcit
    out = []
    for patch, image, tokens_norm in ((16, 64, False), (8, 64, True), (8, 48, True)):
        config = dict(SIZES, patch_size=patch, tokens_norm=tokens_norm, input_size=image)
        out.append((f"timm_xcit_small_case_p{patch}_{image}", "timm", config,
                    lambda patch=patch, norm=tokens_norm: Xcit(img_size=64, patch_size=patch, tokens_norm=norm, **SIZES)))
    sizes = dict(SIZES, patch_size=8, tokens_norm=True)
    for name, words in {"sne": ("sne", 16), "psne": ("psne", 24), "fsne8": ("fsne", 32, 8),
                        "fsne8_unshared": ("fsne", 32, 8, False)}.items():
        out.append((f"ref_xcit_{name}", "reference_models in a timm XCiT", dict(sizes, embedding=words),
                    lambda words=words: R.xcit_replace(Xcit(img_size=64, **sizes), *words)))
    return out
