# SPDX-License-Identifier: Apache-2.0
"""What a case proves, by the C++ names: "SharedAttention" (a part), "Probe::kOutside" (a choice), "AttentionChoice.groups" (a field
that is not left as it is by default). It follows from the parts that its C++ model has and from what its trial comes to."""
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

# What the choices of one layer make of it.
MADE_OF = {
    "KeyMethod::kSpatialK": "ChartMixing::kSeparate",
    "KeyMethod::kKua": "ChartMixing::kSeparate",
    "KeyMethod::kSimpleK": "ChartMixing::kDense",
    "KeyMethod::kVanillaK ChartOrder::kChartMajor": "ChartMixing::kAverage",
    "KeyMethod::kVanillaK ChartOrder::kPlainReshape": "ChartMixing::kSeparate",
}

# Sections by layer that C++ calls otherwise, and keys of theirs.
SECTIONS = dict(block="xcit")
FIELDS = dict(chart_order="order")


def covers_of(case, parts, trial, headers):
    """`parts`: of its C++ model. `trial`: what its document comes to; None where no trial can ask for the case."""
    family = case.family
    found = set(parts) & headers.parts
    found |= of_words(family, case.config, headers) if trial is None else of_trial(family, trial, headers)
    tables = [*GIVEN.items(), *families.all_have("GIVEN"), *families.all_have("PASSED_ON")]
    return found | {name for what, names in tables if what in found for name in names.split()}


def of_trial(family, trial, headers):
    canonical, document = (trial[form]["data"] | trial[form]["model"] for form in ("canonical", "document"))
    sections = {name for name, value in document.items() if is_section(value)}
    sizes = {key: value for key, value in document.items() if key not in sections}
    changed = sizes | {name: canonical[name] for name in sections if name in canonical}
    found = of_struct(family.FAMILY + "Options", family, changed, sizes, headers)
    for name in sections:
        for changed, layer in zip(layers(canonical.get(name, {})), layers(document[name]), strict=True):
            if changed or not hasattr(family, "HAS_OWN_ATTENTION"):
                found |= of_layer(SECTIONS.get(name, name) + "Choice", family, changed, layer, headers)
    return found


def of_layer(struct, family, changed, layer, headers):
    found = of_struct(struct, family, changed, layer, headers)
    return found | {made for of, made in MADE_OF.items() if found.issuperset(of.split())}


def of_words(family, words, headers):
    """Where the words are those of the C++ options."""
    found = of_struct(family.FAMILY + "Options", family, words, {}, headers)
    return found | (family.covers(words, headers) if hasattr(family, "covers") else set())


def of_struct(struct, family, changed, layer, headers):
    """The fields that are changed, and all values of enumerations."""
    struct, fields = headers.struct(struct), FIELDS | getattr(family, "FIELDS", {})
    changed, layer = ({fields.get(key, key): value for key, value in values.items()} for values in (changed, layer))
    return headers.changed(struct, changed) | headers.chosen(struct, layer)


def is_section(value):
    return value != [] and isinstance(layers(value)[0], dict)


def layers(section):
    return section if isinstance(section, list) else [section]
