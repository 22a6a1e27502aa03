# SPDX-License-Identifier: Apache-2.0
"""Heads for semantic segmentation in plain PyTorch: what the C++ ones must agree with.

Written from the papers' descriptions: "Panoptic feature pyramid networks" (section 3.1), "Unified perceptual parsing for scene
understanding" (section 3.1), "Rethinking semantic segmentation from a sequence-to-sequence perspective with transformers" (section
3.2), "Feature pyramid networks for object detection" (section 3). Names of parameters are those of mmsegmentation's state dicts; of
the feature pyramid torchvision's.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn


def resize(x, size, align_corners=False):
    return F.interpolate(x, size=tuple(size), mode="bilinear", align_corners=align_corners)


class ConvNormRelu(nn.Module):
    def __init__(self, size_in, size_out, kernel):
        super().__init__()
        self.conv = nn.Conv2d(size_in, size_out, kernel, padding=kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(size_out)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class Enlarge(nn.Module):
    def __init__(self, factor, align_corners):
        super().__init__()
        self.factor, self.align_corners = factor, align_corners

    def forward(self, x):
        return resize(x, (self.factor * x.shape[2], self.factor * x.shape[3]), self.align_corners)


class FeaturePyramid(nn.Module):
    """A 1 x 1 convolution of each map, the coarser sum added to it, a 3 x 3 convolution."""

    def __init__(self, channels, width):
        super().__init__()
        self.inner_blocks = nn.ModuleList(nn.Sequential(nn.Conv2d(size, width, 1)) for size in channels)
        self.layer_blocks = nn.ModuleList(nn.Sequential(nn.Conv2d(width, width, 3, padding=1)) for _ in channels)

    def forward(self, maps):
        sums = [inner(x) for inner, x in zip(self.inner_blocks, maps, strict=True)]
        for level in range(len(sums) - 2, -1, -1):
            sums[level] = sums[level] + F.interpolate(sums[level + 1], size=sums[level].shape[2:], mode="nearest")
        return [layer(x) for layer, x in zip(self.layer_blocks, sums, strict=True)]


class SemanticFpnHead(nn.Module):
    def __init__(self, channels, strides, classes, width=128, align_corners=False):
        super().__init__()
        self.align_corners = align_corners
        self.conv_seg = nn.Conv2d(width, classes, 1)
        self.scale_heads = nn.ModuleList()
        for size, stride in zip(channels, strides, strict=True):
            halvings, layers = int(math.log2(stride // strides[0])), []
            for i in range(max(1, halvings)):
                layers.append(ConvNormRelu(size if i == 0 else width, width, 3))
                if halvings:
                    layers.append(Enlarge(2, align_corners))
            self.scale_heads.append(nn.Sequential(*layers))

    def forward(self, maps):
        refined = [head(x) for head, x in zip(self.scale_heads, maps, strict=True)]
        return self.conv_seg(sum(resize(x, refined[0].shape[2:], self.align_corners) for x in refined))


class UperNetHead(nn.Module):
    def __init__(self, channels, classes, width=512, pool_scales=(1, 2, 3, 6), align_corners=False):
        super().__init__()
        self.align_corners = align_corners
        self.conv_seg = nn.Conv2d(width, classes, 1)
        self.psp_modules = nn.ModuleList(nn.Sequential(nn.AdaptiveAvgPool2d(scale), ConvNormRelu(channels[-1], width, 1))
                                         for scale in pool_scales)
        self.bottleneck = ConvNormRelu(channels[-1] + len(pool_scales) * width, width, 3)
        self.lateral_convs = nn.ModuleList(ConvNormRelu(size, width, 1) for size in channels[:-1])
        self.fpn_convs = nn.ModuleList(ConvNormRelu(width, width, 3) for _ in channels[:-1])
        self.fpn_bottleneck = ConvNormRelu(len(channels) * width, width, 3)

    def forward(self, maps):
        like = lambda x, other: resize(x, other.shape[2:], self.align_corners)
        pooled = [like(stage(maps[-1]), maps[-1]) for stage in self.psp_modules]
        sums = [lateral(x) for lateral, x in zip(self.lateral_convs, maps)]
        sums.append(self.bottleneck(torch.cat([maps[-1], *pooled], 1)))
        for level in range(len(sums) - 2, -1, -1):
            sums[level] = sums[level] + like(sums[level + 1], sums[level])
        levels = [conv(x) for conv, x in zip(self.fpn_convs, sums)] + [sums[-1]]
        return self.conv_seg(self.fpn_bottleneck(torch.cat([like(x, levels[0]) for x in levels], 1)))


class FcnHead(nn.Module):
    def __init__(self, level, size_in, classes, width=256, convolutions=1):
        super().__init__()
        self.level = level
        self.conv_seg = nn.Conv2d(width if convolutions else size_in, classes, 1)
        self.convs = nn.Sequential(*(ConvNormRelu(size_in if i == 0 else width, width, 3) for i in range(convolutions)))

    def forward(self, maps):
        return self.conv_seg(self.convs(maps[self.level]))


class ChannelNorm(nn.LayerNorm):
    """Over the channels of each place of a map."""

    def __init__(self, size):
        super().__init__(size, eps=1e-6)

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class SetrUpHead(nn.Module):
    def __init__(self, level, size_in, classes, width, convolutions, kernel, factor, align_corners=False):
        super().__init__()
        self.level = level
        self.conv_seg, self.norm = nn.Conv2d(width, classes, 1), ChannelNorm(size_in)
        self.up_convs = nn.ModuleList(
            nn.Sequential(ConvNormRelu(size_in if i == 0 else width, width, kernel), Enlarge(factor, align_corners))
            for i in range(convolutions))

    def forward(self, maps):
        x = self.norm(maps[self.level])
        for conv in self.up_convs:
            x = conv(x)
        return self.conv_seg(x)


class MlaNeck(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.norm = nn.ModuleList(ChannelNorm(size) for size in channels)
        self.mla = nn.Module()
        self.mla.channel_proj = nn.ModuleList(ConvNormRelu(size, width, 1) for size in channels)
        self.mla.feat_extract = nn.ModuleList(ConvNormRelu(width, width, 3) for _ in channels)

    def forward(self, maps):
        own = [proj(norm(x)) for proj, norm, x in zip(self.mla.channel_proj, self.norm, maps, strict=True)]
        sums = [sum(own[level:]) for level in range(len(own) - 1, -1, -1)]  # the last map first
        return [conv(x) for conv, x in zip(self.mla.feat_extract, sums, strict=True)]


class SetrMlaHead(nn.Module):
    def __init__(self, levels, size_in, classes, width, align_corners=False):
        super().__init__()
        self.conv_seg = nn.Conv2d(levels * width, classes, 1)
        self.up_convs = nn.ModuleList(
            nn.Sequential(ConvNormRelu(size_in, width, 3), ConvNormRelu(width, width, 3), Enlarge(4, align_corners))
            for _ in range(levels))

    def forward(self, maps):
        return self.conv_seg(torch.cat([conv(x) for conv, x in zip(self.up_convs, maps, strict=True)], 1))


class Segmenter(nn.Module):
    """images -> logits, and those of the heads that learn beside."""

    def __init__(self, backbone, neck, decode_head, auxiliary_head):
        super().__init__()
        self.backbone = backbone
        if neck is not None:
            self.neck = neck
        self.decode_head = decode_head
        if auxiliary_head is not None:
            self.auxiliary_head = auxiliary_head

    def forward(self, images):
        maps = self.backbone(images)
        if hasattr(self, "neck"):
            maps = self.neck(maps)
        beside = getattr(self, "auxiliary_head", ())
        beside = beside if isinstance(beside, (nn.ModuleList, tuple)) else [beside]
        return self.decode_head(maps), [head(maps) for head in beside]


def losses(logits, beside, labels, ignored=255, counts_ignored=True, weight=0.4):
    """The mean cross entropy over all pixels, or those that are not ignored; those beside count less."""
    def one(x):
        each = F.cross_entropy(resize(x, labels.shape[1:]), labels, ignore_index=ignored, reduction="sum")
        return each / (labels.numel() if counts_ignored else (labels != ignored).sum())

    return one(logits) + weight * sum(one(x) for x in beside)
