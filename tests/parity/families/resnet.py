# SPDX-License-Identifier: Apache-2.0
"""ResNets and ResNeXts, small ones of timm's class."""
from large import presets_of_timm

NAME, FAMILY = "resn", "resnet"
WORDS = dict(bottleneck="bottleneck", layers="stage_depths", widths="stage_widths", groups="cardinality", width_per_group="base_width")
FIELDS = dict({key: word for word, key in WORDS.items()}, bottleneck="has_bottlenecks")
GIVEN = {"ResNetBlock": "ResNetBlockOptions.in ResNetBlockOptions.width ResNetBlockOptions.out ResNetBlockOptions.stride"}
PASSED_ON = {"ResNetOptions.groups": "ResNetBlockOptions.groups", "ResNetOptions.has_bottlenecks": "ResNetBlockOptions.bottleneck"}
FEATURES = r"maxpool|bn1|layer\d(\.\d+(\.(conv|bn)\d)?)?"
GRADIENTS = (r"conv1\.weight|bn1\.weight|layer1\.0\.(conv2\.weight|downsample\.0\.weight)|layer2\.0\.bn3\.bias"
             r"|layer4\.2\.conv3\.weight|fc\.(weight|bias)")


def resnet(layers, widths, groups, width_per_group, classes, bottleneck=True):
    from timm.models.resnet import BasicBlock, Bottleneck, ResNet
    return ResNet(Bottleneck if bottleneck else BasicBlock, layers, num_classes=classes, cardinality=groups, base_width=width_per_group, channels=widths)


def spelled_out(words):
    """But for what says which of timm's classes it is."""
    return {word: value for word, value in words.items() if word not in ("family", "block")}


def cases():
    from timm.models.resnet import Bottleneck, ResNet
    config = dict(block="Bottleneck", layers=(1, 1, 1, 1), groups=8, width_per_group=4, num_classes=10)
    out = [("timm_resnet_small_case", "timm", config,
            lambda: ResNet(Bottleneck, (1, 1, 1, 1), num_classes=10, cardinality=8, base_width=4))]

    def add(name, **sizes):
        out.append((name, "timm", dict(sizes, family="resnet"), lambda: resnet(**sizes)))

    add("timm_resnet_plain", layers=[2, 1, 1, 1], widths=[64, 128, 256, 512], groups=1, width_per_group=64, classes=7)
    add("timm_resnet_basic", layers=[2, 1, 2, 1], widths=[64, 128, 256, 512], groups=1, width_per_group=64, classes=10, bottleneck=False)
    add("timm_resnet_widths", layers=[1, 3, 2, 1], widths=[16, 24, 40, 32], groups=4, width_per_group=16, classes=10)
    return out


def large_cases():
    return presets_of_timm("resnet18", "resnet50", "resnet101", "resnext50_32x4d", "resnext101_32x8d")
