# SPDX-License-Identifier: Apache-2.0
"""Which fields of the C++ structs `FooOptions` a case proves: those that its configuration sets to something else than the default
(or that have no default), and what parts have of them. It is part of what covers.py says."""

SWIN = dict(patch=("patch_size", 4), classes=("num_classes", 1000), dim=("embed_dim", 96), depths=("depths", (2, 2, 6, 2)),
            heads=("num_heads", (3, 6, 12, 24)), mlp_ratio=("mlp_ratio", 4))

# By family: the struct of its options, and of each field the words for it in a configuration and its default; None where it has none.
FAMILY_OPTIONS = {
    "msf": ("SimpleVitOptions", dict(
        image_size=("image_size", None), patch=("patch", 16), classes=("classes", None), dim=("dim", None), depth=("depth", None),
        heads=("heads", None), dim_head=("dim_head", 64), mlp_dim=("mlp_dim", None), attention=("attention", None))),
    "keyvit": ("KeyVitOptions", dict(
        image_size=("image", 224), patch=("patch", 16), classes=("classes", 1000), dim=("dim", 384), heads=("heads", 6),
        mlp_dim=("mlp", 1536), keys=("keys", None))),
    "vit": ("VitOptions", dict(
        image_size=("img_size", 224), patch=("patch_size", 16), classes=("num_classes", 1000), dim=("embed_dim", 384),
        depth=("depth", 12), heads=("num_heads", 6), mlp_ratio=("mlp_ratio", 4), has_qkv_bias=("qkv_bias", True))),
    "swin": ("SwinOptions", dict(SWIN, image_size=("img_size", 224), window=("window_size", 7), attention=("attention", None))),
    "swinv2": ("SwinV2Options", dict(SWIN, image_size=("img_size", 256), window=("window_size", 8), attention=("attention", None),
                                     pretrained_window=("pretrained_window_sizes", ()))),
    "xcit": ("XcitOptions", dict(
        patch=("patch_size", 16), classes=("num_classes", 1000), dim=("embed_dim", None), heads=("num_heads", None),
        mlp_ratio=("mlp_ratio", 4), class_blocks=("cls_attn_layers", 2), tokens_norm=("tokens_norm", True),
        patch_projection=("patch_projection", "convolutions"), blocks=("blocks", None))),
    "resn": ("ResNetOptions", dict(
        classes=("classes num_classes", 1000), layers=("layers", (3, 4, 6, 3)), widths=("widths", (64, 128, 256, 512)),
        groups=("groups", 1), width_per_group=("width_per_group", 64))),
    "efficientnet": ("EfficientNetOptions", dict(
        classes=("classes", 1000), stem=("stem", 32), head=("head", 1280), stages=("stages", None))),
    "regnety": ("RegNetOptions", dict(
        classes=("classes", 1000), stem=("stem", 32), stages=("depth", 18), se_ratio=("se_ratio", 0.25))),
}

# A stage of an EfficientNet is a list of these.
STAGE_DEFAULTS = dict(depth=1, width=0, kernel=3, stride=1, expansion=6)

# What a part is given wherever it is built.
GIVEN = {
    "SharedAttention": "AttentionOptions.dim AttentionOptions.heads AttentionOptions.choice",
    "ManifoldKey": "ManifoldKeyOptions.dim ManifoldKeyOptions.tokens ManifoldKeyOptions.choice",
    "SwinStage": "WindowAttentionOptions.dim WindowAttentionOptions.heads WindowAttentionOptions.window",
    "TokenAttention": "QkvOptions.dim",
    "CrossCovariance": "CrossCovarianceOptions.qkv CrossCovarianceOptions.heads",
    "ClassAttentionBlock": "ClassAttentionBlockOptions.dim ClassAttentionBlockOptions.heads ClassAttentionBlockOptions.mlp_dim",
    "XcitBlock": "XcitBlockOptions.dim XcitBlockOptions.heads XcitBlockOptions.mlp_dim XcitBlockOptions.choice",
    "ResNetBlock": "ResNetBlockOptions.in ResNetBlockOptions.width ResNetBlockOptions.out ResNetBlockOptions.stride",
    "RegNetBlock": "RegNetBlockOptions.in RegNetBlockOptions.width RegNetBlockOptions.stride RegNetBlockOptions.group_width",
    "SqueezeExcite": "SqueezeExciteOptions.channels SqueezeExciteOptions.reduced",
    "MobileBottleneck": "SqueezeExciteOptions.activation SqueezeExciteOptions.reduce_name SqueezeExciteOptions.expand_name",
    "Conv2d": "Conv2dOptions.in Conv2dOptions.out Conv2dOptions.kernel",
    "PatchEmbed": "Conv2dOptions.stride",
    "HalvingConv": "Conv2dOptions.bias",
    "LocalPatchInteraction": "Conv2dOptions.padding Conv2dOptions.groups",
}

# What a part has of its model, or of a choice.
PASSED_ON = {
    "SwinV2Options.pretrained_window": "WindowAttentionOptions.pretrained_window",
    "SimpleVitOptions.dim_head": "AttentionOptions.dim_head",
    "VitOptions.has_qkv_bias": "QkvOptions.bias",
    "XcitChoice.embedding": "QkvOptions.embedding",
    "EmbeddingChoice.code_size": "QkvOptions.codes XcitBlockOptions.codes",
    "XcitChoice.l2_norm": "CrossCovarianceOptions.l2_norm",
    "XcitChoice.learned_temperature": "CrossCovarianceOptions.learned_temperature",
    "XcitChoice.temperature": "CrossCovarianceOptions.temperature",
    "XcitOptions.tokens_norm": "ClassAttentionBlockOptions.tokens_norm",
    "ResNetOptions.groups": "ResNetBlockOptions.groups",
    "RegNetOptions.se_ratio": "RegNetBlockOptions.se_ratio",
}


def of_family(family, config):
    """Of the options that a model of this configuration is built from."""
    struct, fields = FAMILY_OPTIONS[family]
    found = [f"{struct}.{field}" for field, (words, default) in fields.items()
             if any(plain(config.get(word, default)) != plain(default) for word in words.split())]
    if family == "efficientnet":
        found += [f"EfficientNetStageOptions.{field}" for stage in config.get("stages", ())
                  for (field, default), value in zip(STAGE_DEFAULTS.items(), stage, strict=True) if value != default]
    return found


def of_parts(found):
    """Of the options of parts, where these parts and choices are there."""
    return " ".join(text for table in (GIVEN, PASSED_ON) for name, text in table.items() if name in found).split()


def plain(value):
    return list(value) if isinstance(value, tuple) else value
