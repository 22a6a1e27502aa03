# SPDX-License-Identifier: Apache-2.0
"""The case of a convolutional network with groups: a ResNeXt of one block in each stage."""


def cases():
    from timm.models.resnet import Bottleneck, ResNet
    config = dict(block="Bottleneck", layers=(1, 1, 1, 1), groups=8, width_per_group=4, num_classes=10)
    return [("timm_resnet_small_case", "timm", config,
             lambda: ResNet(Bottleneck, (1, 1, 1, 1), num_classes=10, cardinality=8, base_width=4))]
