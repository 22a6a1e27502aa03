# SPDX-License-Identifier: Apache-2.0
"""What a case proves, by the C++ names: "SharedAttention" (a part), "Probe::kOutside" (a choice), "AttentionChoice.groups" (a field
that is not left as it is by default). It follows from the case's configuration; covered_test.py holds it against the headers."""
import re

import covers_options

# The parts that every model of a family is made of.
FAMILY_PARTS = {
    "msf": "SimpleVit FeedForward Linear LayerNorm",
    "keyvit": "KeyVit KeyAttention FeedForward Linear LayerNorm",
    "vit": "Vit VitBlock TokenAttention PatchEmbed Mlp Linear LayerNorm Conv2d",
    "swin": "Swin SwinPatchEmbed SwinPatchMerging SwinStage SwinHead FixedTable Mlp Linear LayerNorm Conv2d NormPlace::kBefore",
    "swinv2": "SwinV2 SwinPatchEmbed SwinPatchMerging SwinStage SwinHead FixedTable Mlp PositionBiasMlp Linear LayerNorm Conv2d "
              "NormPlace::kAfter",
    "xcit": "Xcit XcitBlock ConvPatches FourierPositions ClassAttentionBlock ClassAttention Mlp Linear LayerNorm Conv2d "
            "BatchNorm2d",
    "resn": "ResNet ResNetStage ResNetBlock ResNetShortcut MaxPool Linear Conv2d BatchNorm2d",
    "efficientnet": "EfficientNet EfficientNetStage MobileBottleneck SqueezeExcite BatchNormAct Linear Conv2d Activation::kSilu "
                    "Activation::kNone",
    "regnety": "RegNet RegNetStage RegNetBlock PoolingHead SqueezeExcite ConvNormAct BatchNormAct Linear Conv2d "
               "Activation::kRelu Activation::kNone",
}

KEY_METHODS = {"spatial": "kSpatialK", "kua": "kKua", "simple": "kSimpleK", "vanilla": "kVanillaK"}
BROADCASTINGS = {"none": "kNone", "all": "kOverAll", "charts": "kOverCharts"}
CHART_ORDERS = {"chart": "kChartMajor", "plain": "kPlainReshape"}


def camel(word):
    return "k" + "".join(part.capitalize() for part in word.split("-"))


def changed(struct, choice, **defaults):
    """The fields that a choice sets to something else than the default."""
    return [f"{struct}.{field}" for field, default in defaults.items() if choice.get(field, default) != default]


def attention(choice):
    """AttentionChoice. The layout says nothing where there is one group."""
    if choice["kernel"] == "none":
        return ["Kernel::kNone"]
    found = [f"Kernel::{camel(choice['kernel'])}", f"Probe::{camel(choice['probe'])}"]
    if choice["groups"] > 1:
        found += [f"Layout::{camel(choice['layout'])}"] + changed("AttentionChoice", choice, layout="interleaved")
    return found + changed("AttentionChoice", choice, kernel="dot", probe="none", share="QKV-W", groups=1, tied_weight_scale=1.0)


def key(method, charts, broadcasting=None, order="chart"):
    """KeyChoice."""
    method = method.removesuffix("k")
    usual = "all" if method in ("kua", "vanilla") else "none"
    broadcasting = broadcasting or usual
    mixing = "kDense" if method == "simple" else "kAverage" if method == "vanilla" and order == "chart" else "kSeparate"
    found = [f"KeyMethod::{KEY_METHODS[method]}", f"Broadcasting::{BROADCASTINGS[broadcasting]}",
             f"ChartOrder::{CHART_ORDERS[order]}", "ManifoldKey", "ChartExpansion", "TokenMixing", f"ChartMixing::{mixing}"]
    return found + changed(
        "KeyChoice", dict(method=method, charts=charts, broadcasting=broadcasting, order=order), method="spatial", charts=8,
        broadcasting=usual, order="chart")


def key_of_kind(kind, charts):
    """The reference's word for a key: "none" is the linear one, "vanilla_nocb" has no context broadcasting."""
    if kind == "none":
        return []
    return key(kind.removesuffix("_nocb"), charts, "none" if kind.endswith("_nocb") else None)


def key_vit(config):
    if "kind" in config:
        return key_of_kind(config["kind"], config["charts"])
    return [name for choice in config.get("keys", ()) if choice for name in key(**choice)]


def swin_block(choice, version_2):
    kind = choice["kind"]
    if kind == "none":
        return ["Kernel::kNone"]
    if kind == "shared":
        return ["WindowSharedAttention", *attention(choice)]
    if kind == "key":
        return ["WindowCosineKeyAttention" if version_2 else "WindowKeyAttention", *key(choice["key"], choice["charts"])]
    return ["WindowCosineAttention" if version_2 else "WindowQkvAttention"]


def swin_variant(variant, charts):
    """The reference's word for one attention in every block."""
    if not variant.startswith("msf"):
        return dict(kind="key", key=variant, charts=charts)
    return dict(kind="shared", kernel="gaussian", probe="inside", share="QKVPW", groups=2 if variant == "msf-g2" else 1,
                layout="interleaved", tied_weight_scale=1.0)


def swin(config, version_2=False):
    blocks = config.get("attention", [dict(kind="qkv")])
    if "variant" in config:
        blocks = [swin_variant(config["variant"], config["charts"])]
    return [name for choice in blocks for name in swin_block(choice, version_2)]


def embedding(choice):
    """EmbeddingChoice, or the reference's words: a kind, a width, a size of codes, whether blocks share them."""
    if not isinstance(choice, dict):
        kind, width, code_size, over_blocks = [*choice, 0, True][:4] if len(choice) == 2 else [*choice, True][:4]
        choice = dict(widths=[width], shared=[kind == "fsne", kind != "sne"], code_size=code_size, codes_over_blocks=over_blocks)
    return ["NonLinearQkv"] + (["Codes"] if choice["code_size"] else []) + changed(
        "EmbeddingChoice", dict(choice, shared=any(choice["shared"])), widths=[], shared=False, code_size=0, codes_over_blocks=True,
        bias=True)


def xcit_block(block):
    over = block.get("attention", "channels")
    found = [f"XcitAttention::{camel(over)}"]
    found += {"channels": ["CrossCovariance"], "tokens": ["TokenAttention"], "none": []}[over]
    found += embedding(block["embedding"]) + ["XcitChoice.embedding"] if block.get("embedding") else []
    if block.get("lpi", True):
        found.append("LocalPatchInteraction")
    else:
        found.append("XcitChoice.local_patch_interaction")
    return found + changed("XcitChoice", block, attention="channels", l2_norm=True, learned_temperature=True, temperature=1.0)


def xcit(config):
    convolutions = config.get("patch_projection", "convolutions") == "convolutions"
    found = ["PatchProjection::kConvolutions", "ConvStack", "HalvingConv"] if convolutions else ["PatchProjection::kLinear"]
    blocks = config.get("blocks", [dict(embedding=config.get("embedding"))])
    return found + [name for block in blocks for name in xcit_block(block)]


def family_of(name):
    """A case's name begins with where it comes from and its family: ref_msf_QKVPW, timm_resnet50."""
    return re.match("(?:ref|timm)_(" + "|".join(sorted(FAMILY_PARTS, reverse=True)) + ")", name).group(1)


def covers_of(name, config):
    family = family_of(name)
    found = FAMILY_PARTS[family].split()
    if family == "msf":
        found += ["SharedAttention", *(word for choice in config.get("attention", ()) for word in attention(choice))]
    elif family == "keyvit":
        found += key_vit(config)
    elif family in ("swin", "swinv2"):
        found += swin(config, version_2=family == "swinv2")
    elif family == "xcit":
        found += xcit(config)
    found += covers_options.of_family(family, config)
    return sorted({*found, *covers_options.of_parts(found)})
