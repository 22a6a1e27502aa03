# SPDX-License-Identifier: Apache-2.0
"""RegNetYs, small ones of timm's class."""
from large import presets_of_timm

NAME, FAMILY = "regnety", "regnet"
FIELDS = dict(depth="stages")  # which follow from it
GIVEN = {
    "RegNetBlock": "RegNetBlockOptions.in RegNetBlockOptions.width RegNetBlockOptions.stride RegNetBlockOptions.group_width",
    "RegNet": "Activation::kRelu Activation::kNone",
}
PASSED_ON = {"RegNetOptions.se_ratio": "RegNetBlockOptions.se_ratio"}
EXCEPTIONS = {"RegNetOptions.image_size": "the model takes images of every size"}
WITHOUT_TRIAL = {
    "timm_regnety_small": "the stem's width is no key",
    "timm_regnety_narrow": "neither the stem's width nor the share of squeeze and excitation is a key",
}
FEATURES = r"stem(\.bn)?|s\d(\.b\d+(\.conv\d)?)?"
GRADIENTS = (r"stem\.conv\.weight|s1\.b1\.(conv2\.conv\.weight|se\..*|downsample\..*)|s2\.b1\.conv3\.bn\.bias"
             r"|s4\.b1\.conv1\.conv\.weight|head\.fc\.weight")
CONVOLUTION_GAIN = 1.4


def reg_net(stem, depth, initial_width, width_slope, width_multiplier, group_width, se_ratio, classes):
    from timm.models.regnet import RegNet, RegNetCfg
    return RegNet(RegNetCfg(depth=depth, w0=initial_width, wa=width_slope, wm=width_multiplier, group_size=group_width,
                            se_ratio=se_ratio, stem_width=stem), num_classes=classes)


def cases():
    out = []

    def add(name, **sizes):
        out.append((name, "timm", dict(sizes, family="reg_net"), lambda: reg_net(**sizes)))

    add("timm_regnety_small", stem=16, depth=7, initial_width=24, width_slope=36.0, width_multiplier=2.2, group_width=16,
        se_ratio=0.25, classes=10)
    add("timm_regnety_narrow", stem=12, depth=7, initial_width=16, width_slope=14.0, width_multiplier=1.8, group_width=24,
        se_ratio=0.5, classes=5)
    return out


def large_cases():
    return presets_of_timm("regnety_160")
