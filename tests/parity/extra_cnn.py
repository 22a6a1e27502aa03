# SPDX-License-Identifier: Apache-2.0
"""Further cases of convolutional networks: ResNets, an EfficientNet and a RegNetY, small ones of timm's classes.

cases() lists (name, source, config, builder). `config` names the family and its sizes; an EfficientNet's stages
are [depth, width, kernel, stride, expansion].
"""
from functools import partial


def resnet(layers, widths, groups, width_per_group, classes):
    from timm.models.resnet import Bottleneck, ResNet
    return ResNet(Bottleneck, layers, num_classes=classes, cardinality=groups, base_width=width_per_group, channels=widths)


def efficient_net(stem, stages, head, classes):
    from timm.models._efficientnet_builder import decode_arch_def
    from timm.models.efficientnet import EfficientNet
    from torch import nn
    words = [[f"{'ds' if expansion == 1 else 'ir'}_r{depth}_k{kernel}_s{stride}_e{expansion}_c{width}_se0.25"]
             for depth, width, kernel, stride, expansion in stages]
    return EfficientNet(decode_arch_def(words), num_classes=classes, num_features=head, stem_size=stem, act_layer=nn.SiLU,
                        round_chs_fn=lambda channels, **_: channels)


def reg_net(stem, depth, initial_width, width_slope, width_multiplier, group_width, se_ratio, classes):
    from timm.models.regnet import RegNet, RegNetCfg
    return RegNet(RegNetCfg(depth=depth, w0=initial_width, wa=width_slope, wm=width_multiplier, group_size=group_width,
                            se_ratio=se_ratio, stem_width=stem), num_classes=classes)


BUILD = dict(resnet=resnet, efficient_net=efficient_net, reg_net=reg_net)


def cases():
    out = []

    def add(name, family, **sizes):
        out.append((name, "timm", dict(sizes, family=family), partial(BUILD[family], **sizes)))

    add("timm_resnet_plain", "resnet", layers=[2, 1, 1, 1], widths=[64, 128, 256, 512], groups=1, width_per_group=64, classes=7)
    add("timm_resnet_widths", "resnet", layers=[1, 3, 2, 1], widths=[16, 24, 40, 32], groups=4, width_per_group=16, classes=10)
    add("timm_efficientnet_small", "efficient_net", stem=16, head=64, classes=10,
        stages=[[1, 8, 3, 1, 1], [2, 12, 3, 2, 6], [2, 20, 5, 2, 4], [1, 20, 5, 1, 1]])
    add("timm_regnety_small", "reg_net", stem=16, depth=7, initial_width=24, width_slope=36.0, width_multiplier=2.2, group_width=16,
        se_ratio=0.25, classes=10)
    add("timm_regnety_narrow", "reg_net", stem=12, depth=7, initial_width=16, width_slope=14.0, width_multiplier=1.8, group_width=24,
        se_ratio=0.5, classes=5)
    return out
