# SPDX-License-Identifier: Apache-2.0
"""A case as a trial: what its configuration says in the words of timm and the references, under the keys of a trial's document.

Nothing is left out: a word or a value that no key says raises LookupError.
"""
import families
from choices import demand_none, taken

# The keys of `data`, by the words of a case.
DATA = dict(dict.fromkeys(("image_size", "img_size", "input_size", "image"), "image_size"),
            **dict.fromkeys(("classes", "num_classes"), "classes"))


def trial_document(case, config):
    """`config` is the case's, as its file holds it."""
    family = families.of_case(case.name)
    if not hasattr(family, "keys"):
        raise LookupError(f"no key says the sizes of a model of {family.FAMILY}")
    words = dict(config)
    data = dict(dict(name="any", image_size=case.size), **taken(words, DATA))
    model = dict(family.keys(words), family=family.FAMILY)
    demand_none(words)
    return dict(model=model, data=data, recipe=dict(use="demo"), seed=0)
