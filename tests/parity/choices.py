# SPDX-License-Identifier: Apache-2.0
"""The words for choices that several families have: what they prove, by the C++ names, and what they say by the keys of a trial."""


def camel(word):
    return "k" + "".join(part.capitalize() for part in word.split("-"))


def changed(struct, choice, defaults, fields={}):
    """The fields that a choice sets to something else than the default. `fields`: those that C++ calls otherwise."""
    return [f"{struct}.{fields.get(word, word)}" for word, default in defaults.items() if choice.get(word, default) != default]


def same(words):
    """Of words that are keys as well."""
    return {word: word for word in words.split()}


def taken(words, keys):
    """What the words that have keys say, under these. The words are gone then."""
    return {keys[word]: words.pop(word) for word in list(words) if word in keys}


def demand_none(words):
    if words:
        raise LookupError(f"no key says {', '.join(sorted(words))}")


def section(words, keys):
    """Of words that all have keys."""
    words = dict(words)
    found = taken(words, keys)
    demand_none(words)
    return found


# Timm's words for the sizes of transformers.
TIMM = dict(same("depth mlp_ratio"), embed_dim="dim", num_heads="heads", patch_size="patch")

# AttentionChoice. Its words are its keys.
ATTENTION = dict(kernel="dot", probe="none", share="QKV-W", groups=1, layout="interleaved", tied_weight_scale=1.0)
ATTENTION_KEYS = {word: word for word in ATTENTION}


def attention_covers(choice):
    """The layout says nothing where there is one group."""
    if choice["kernel"] == "none":
        return ["Kernel::kNone"]
    found = [f"Kernel::{camel(choice['kernel'])}", f"Probe::{camel(choice['probe'])}"]
    defaults = dict(ATTENTION)
    if choice["groups"] > 1:
        found.append(f"Layout::{camel(choice['layout'])}")
    else:
        del defaults["layout"]
    return found + changed("AttentionChoice", choice, defaults)


# KeyChoice: what is said by "spatial", "spatialk" and so on. "nocb" is the reference's: without context broadcasting.
KEY_METHODS = dict(spatial="kSpatialK", kua="kKua", simple="kSimpleK", vanilla="kVanillaK")
BROADCASTINGS = dict(none="kNone", all="kOverAll", charts="kOverCharts")
CHART_ORDERS = dict(chart="kChartMajor", plain="kPlainReshape")
KEY_KEYS = dict(same("method charts broadcasting gamma gamma_cb"), order="chart_order")
KEY_OF_KIND = dict(
    none=dict(method="linear"), spatial=dict(method="spatialk"), kua=dict(method="kua"), simple=dict(method="simplek"),
    vanilla=dict(method="vanillak"), vanilla_nocb=dict(method="vanillak", broadcasting="none"))


def key_covers(method, charts, broadcasting=None, order="chart"):
    method = method.removesuffix("k")
    usual = "all" if method in ("kua", "vanilla") else "none"
    broadcasting = broadcasting or usual
    mixing = "kDense" if method == "simple" else "kAverage" if method == "vanilla" and order == "chart" else "kSeparate"
    found = [f"KeyMethod::{KEY_METHODS[method]}", f"Broadcasting::{BROADCASTINGS[broadcasting]}",
             f"ChartOrder::{CHART_ORDERS[order]}", "ManifoldKey", "ChartExpansion", "TokenMixing", f"ChartMixing::{mixing}"]
    choice = dict(method=method, charts=charts, broadcasting=broadcasting, order=order)
    return found + changed("KeyChoice", choice, dict(method="spatial", charts=8, broadcasting=usual, order="chart"))


def key_of_kind_covers(kind, charts):
    """The reference's word for a key: "none" is the linear one, "vanilla_nocb" has no context broadcasting."""
    if kind == "none":
        return []
    return key_covers(kind.removesuffix("_nocb"), charts, "none" if kind.endswith("_nocb") else None)


def key_of_kind(words, kind):
    """Its section of a trial; `kind` is the word that says which."""
    return dict(KEY_OF_KIND[words.pop(kind)], charts=words.pop("charts"))
