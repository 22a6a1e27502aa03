# SPDX-License-Identifier: Apache-2.0
"""An EfficientNet, a small one of timm's class. The stages in its configuration are [depth, width, kernel, stride, expansion]."""
from large import presets_of_timm

NAME, FAMILY = "efficientnet", "efficientnet"
GIVEN = {
    "MobileBottleneck": "SqueezeExciteOptions.activation SqueezeExciteOptions.reduce_name SqueezeExciteOptions.expand_name",
    "EfficientNet": "Activation::kSilu Activation::kNone",
}
EXCEPTIONS = {"EfficientNetOptions.image_size": "the model takes images of every size"}
WITHOUT_TRIAL = {"timm_efficientnet_small": "stem, stages and head are those of B0, which a trial can only scale"}
FEATURES = r"bn[12]|conv_head|blocks\.\d+(\.\d+)?"
GRADIENTS = (r"conv_stem\.weight|bn1\.bias|blocks\.0\.0\.conv_dw\.weight|blocks\.1\.0\.se\..*|blocks\.2\.0\.conv_pwl\.weight"
             r"|conv_head\.weight|classifier\.weight")
CONVOLUTION_GAIN = 1.4


def efficient_net(stem, stages, head, classes):
    from timm.models._efficientnet_builder import decode_arch_def
    from timm.models.efficientnet import EfficientNet
    from torch import nn
    words = [[f"{'ds' if expansion == 1 else 'ir'}_r{depth}_k{kernel}_s{stride}_e{expansion}_c{width}_se0.25"]
             for depth, width, kernel, stride, expansion in stages]
    return EfficientNet(decode_arch_def(words), num_classes=classes, num_features=head, stem_size=stem, act_layer=nn.SiLU,
                        round_chs_fn=lambda channels, **_: channels)


def covers(words, headers):
    struct = "EfficientNetStageOptions"
    stages = [dict(zip(headers.structs[struct], stage, strict=True)) for stage in words["stages"]]
    return {field for stage in stages for field in headers.changed(struct, stage)}


def cases():
    sizes = dict(stem=16, head=64, classes=10, stages=[[1, 8, 3, 1, 1], [2, 12, 3, 2, 6], [2, 20, 5, 2, 4], [1, 20, 5, 1, 1]])
    return [("timm_efficientnet_small", "timm", dict(sizes, family="efficient_net"), lambda: efficient_net(**sizes))]


def large_cases():
    return presets_of_timm("efficientnet_b0")
