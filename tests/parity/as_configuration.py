# SPDX-License-Identifier: Apache-2.0
"""A case as a trial: what its configuration says in the words of timm and the references, under the keys of a trial's document.

Nothing is left out: a word or a value that no key says raises LookupError.
"""
from covers import family_of


def same(words):
    """Of words that are keys as well."""
    return {word: word for word in words.split()}


# The keys, by the words of a case.
DATA = dict(dict.fromkeys(("image_size", "img_size", "input_size", "image"), "image_size"), classes="classes", num_classes="classes")
TIMM = dict(same("depth mlp_ratio"), embed_dim="dim", num_heads="heads", patch_size="patch")
TIMM_STAGES = dict(TIMM, depths="stage_depths", num_heads="stage_heads", window_size="window", pretrained_window_sizes="pretrained_window")
ATTENTION = same("kernel probe share groups layout tied_weight_scale")
KEY = dict(same("method charts broadcasting gamma gamma_cb"), order="chart_order")
BLOCK = same("attention lpi l2_norm learned_temperature temperature")
EMBEDDING = dict(same("widths shared code_size code_deviation bias"), codes_over_blocks="codes")

# The values, by the words of a case.
CHART_ORDERS = dict(chart="chart-major", plain="plain-reshape")
CODES = {True: "model", False: "block"}

# What one word of the references says.
KEYS = dict(none=dict(method="linear"), spatial=dict(method="spatialk"), kua=dict(method="kua"), simple=dict(method="simplek"),
            vanilla=dict(method="vanillak"), vanilla_nocb=dict(method="vanillak", broadcasting="none"))
MEAN_SHIFTS = {"msf": dict(kernel="gaussian", probe="inside"), "msf-g2": dict(kernel="gaussian", probe="inside", groups=2)}
EMBEDDINGS = dict(sne="sne", psne="p-sne", fsne="f-sne")


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


def simple_vit(words):
    attention = [section(layer, ATTENTION) for layer in words.pop("attention")]
    return dict(taken(words, same("dim depth heads dim_head mlp_dim patch")), attention=attention)


def vit(words):
    return taken(words, dict(TIMM, qkv_bias="qkv_bias"))


def key_of_layer(words):
    return dict(section(words, KEY), chart_order=CHART_ORDERS[words["order"]]) if words else {}


def key_of_reference(words, kind):
    """`kind` is the word that says which."""
    return dict(KEYS[words.pop(kind)], charts=words.pop("charts"))


def key_vit(words):
    model = taken(words, dict(same("dim depth heads patch"), mlp="mlp_dim"))
    if "kind" in words:
        return dict(model, key=key_of_reference(words, "kind"))
    keys = words.pop("keys")
    return dict(model, depth=len(keys), key=[key_of_layer(layer) for layer in keys])


# What a kind of attention says: nothing, or one section.
WINDOW_ATTENTION = dict(
    qkv=lambda words: {},
    none=lambda words: dict(attention=dict(kernel="none")),
    shared=lambda words: dict(attention=taken(words, ATTENTION)),
    key=lambda words: dict(key=key_of_reference(words, "key")))


def window_attention(block):
    words = dict(block)
    found = WINDOW_ATTENTION[words.pop("kind")](words)
    demand_none(words)
    return found


def window_attention_of_reference(words):
    """One for every block."""
    if words["variant"] not in MEAN_SHIFTS:
        return dict(key=key_of_reference(words, "variant"))
    del words["charts"]  # of keys alone
    return dict(attention=MEAN_SHIFTS[words.pop("variant")])


def swin(words):
    model = taken(words, TIMM_STAGES)
    if "variant" in words:
        return dict(model, **window_attention_of_reference(words))
    blocks = [window_attention(block) for block in words.pop("attention", ())]
    for name in {name for block in blocks for name in block}:
        model[name] = [block.get(name, {}) for block in blocks]
    return model


def embedding(words):
    """Its kind follows from what is shared. Without a hidden layer no widths may be given."""
    if not words:
        return {}
    shared = [str(layer) for layer, is_shared in enumerate(words["shared"], 1) if is_shared]
    found = section({word: value for word, value in words.items() if value != []}, EMBEDDING)
    return dict(found, kind="sne", depth=len(words["shared"]), shared=",".join(shared) or "none", codes=CODES[found["codes"]])


def embedding_of_reference(kind, width, code_size=0, codes_over_blocks=True):
    return dict(kind=EMBEDDINGS[kind], width=width, code_size=code_size, codes=CODES[codes_over_blocks])


def xcit(words):
    model = taken(words, dict(TIMM, **same("eta tokens_norm"), cls_attn_layers="class_blocks", patch_projection="patches"))
    if "embedding" in words:
        model["embedding"] = embedding_of_reference(*words.pop("embedding"))
    if "blocks" in words:
        blocks = [dict(block) for block in words.pop("blocks")]
        model["embedding"] = [embedding(block.pop("embedding", None)) for block in blocks]
        model["block"] = [section(block, BLOCK) for block in blocks]
    return model


def resnet(words):
    for name in ("family", "block"):  # say which of timm's classes it is
        words.pop(name, None)
    return taken(words, dict(layers="stage_depths", widths="stage_widths", groups="cardinality", width_per_group="base_width"))


# By the family in a case's name: that of a trial, and the section `model`.
FAMILIES = dict(msf=("simple-vit", simple_vit), vit=("vit", vit), keyvit=("key-vit", key_vit), swin=("swin", swin),
                swinv2=("swin-v2", swin), xcit=("xcit", xcit), resn=("resnet", resnet))


def trial_document(case, config):
    """`config` is the case's, as its file holds it."""
    family = family_of(case.name)
    if family not in FAMILIES:
        raise LookupError(f"no key says the sizes of a model of {family}")
    name, model_section = FAMILIES[family]
    words = dict(config)
    data = dict(dict(name="any", image_size=case.size), **taken(words, DATA))
    model = dict(model_section(words), family=name)
    demand_none(words)
    return dict(model=model, data=data, recipe=dict(use="demo"), seed=0)
