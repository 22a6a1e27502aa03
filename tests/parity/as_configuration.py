# SPDX-License-Identifier: Apache-2.0
"""A case as a trial: what its configuration says in the words of timm and the references, under the keys of a trial's document.

The keys, and the values that they take, are those that the trainer says. Nothing is left out: a word or a value that no key says
raises LookupError.
"""
from trainer import layer_of

# Words for the keys of `data`. Those for the keys of a model say the families.
DATA = dict(img_size="image_size", input_size="image_size", image="image_size", num_classes="classes")


def trial_document(case, config, trainer):
    """`config` is the case's, as its file holds it."""
    family, words = case.family, dict(config)
    if hasattr(family, "spelled_out"):
        words = family.spelled_out(words)
    of_data = {word: words.pop(word) for word in list(words) if DATA.get(word, word) in trainer.data}
    data = dict(dict(name="any", image_size=case.size), **under_keys(of_data, trainer.data, DATA))
    model = under_keys(words, trainer.model(family.FAMILY), getattr(family, "WORDS", {}), getattr(family, "VALUES", {}))
    return dict(model=dict(model, family=family.FAMILY), data=data, recipe=dict(use="demo"), seed=0)


def under_keys(words, keys, other_words, other_values={}):
    """A word is a key, or one of `other_words` for keys; a value likewise, by key."""
    found = {}
    for word, value in words.items():
        key = word if word in keys else other_words.get(word)
        if key not in keys:
            raise LookupError(f"no key says {word}")
        layer = layer_of(keys[key])
        if layer is None:
            found[key] = value_of(key, keys[key], value, other_values.get(key, {}))
        elif isinstance(value, dict):
            found[key] = under_keys(value, layer, other_words, other_values)
        else:
            found[key] = [under_keys(each or {}, layer, other_words, other_values) for each in value]
    return found


def value_of(key, schema, value, others):
    if others:
        value = others.get(value, value)
    if value not in schema.get("enum", [value]):
        raise LookupError(f"{key} cannot be {value}")
    return value
