# SPDX-License-Identifier: Apache-2.0
"""What a case proves, by the C++ names: "SharedAttention" (a part), "Probe::kOutside" (a choice), "AttentionChoice.groups" (a field
that is not left as it is by default). It follows from the case's configuration; covered_test.py holds it against the headers."""
import families

# What a part that several families have is given wherever it is built.
GIVEN = {
    "SharedAttention": "AttentionOptions.dim AttentionOptions.heads AttentionOptions.choice",
    "ManifoldKey": "ManifoldKeyOptions.dim ManifoldKeyOptions.tokens ManifoldKeyOptions.choice",
    "TokenAttention": "QkvOptions.dim",
    "SqueezeExcite": "SqueezeExciteOptions.channels SqueezeExciteOptions.reduced",
    "Conv2d": "Conv2dOptions.in Conv2dOptions.out Conv2dOptions.kernel",
    "PatchEmbed": "Conv2dOptions.stride",
}


def covers_of(name, config):
    family = families.of_case(name)
    found = family.PARTS.split() + options_of(family, config)
    if hasattr(family, "covers"):
        found += family.covers(config)
    return sorted({*found, *of_parts(found)})


def options_of(family, config):
    """The fields of a family's options that a configuration sets to something else than the default, or that have none."""
    struct, fields = family.OPTIONS
    return [f"{struct}.{field}" for field, (words, default) in fields.items()
            if any(plain(config.get(word, default)) != plain(default) for word in words.split())]


def of_parts(found):
    """Of the options of parts, where these parts and choices are there."""
    passed_on = [*GIVEN.items(), *families.all_have("GIVEN"), *families.all_have("PASSED_ON")]
    return [field for name, fields in passed_on if name in found for field in fields.split()]


def plain(value):
    return list(value) if isinstance(value, tuple) else value
