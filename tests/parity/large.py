# SPDX-License-Identifier: Apache-2.0
"""Cases at the sizes that the papers print: what our presets are. `config` has the `model` section of a trial's document, from
which the C++ model is built, and the image size."""


def preset(name, image_size=224, **section):
    return dict(model=dict(section, preset=name), input_size=image_size)


def presets_of_timm(*names, image_size=224):
    """Models that timm has by the same names."""
    import timm
    return [("timm_" + name, "timm", preset(name, image_size), lambda name=name: timm.create_model(name, pretrained=False))
            for name in names]
