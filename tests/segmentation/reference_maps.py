# SPDX-License-Identifier: Apache-2.0
"""Backbones that give maps of features, from timm's models and those of tests/parity: what the C++ ones must agree with.

XCiT's are brought to strides of 4, 8, 16 and 32 pixels as its paper says (section 4.2): transposed convolutions, max pooling; the
normalisation and GELU between two of them are the release's. Swin's have a norm each ("Swin transformer", its use in segmentation).
"""
import torch
import torch.nn.functional as F
from torch import nn

import reference_models as R


def as_map(tokens, rows, columns):
    return tokens.mT.reshape(tokens.shape[0], -1, rows, columns)


class XcitTrunk(nn.Module):
    """timm's without class attention, norm and head."""

    def __init__(self, layers, **sizes):
        from timm.models.xcit import Xcit
        super().__init__()
        whole = Xcit(**sizes)
        self.patch_embed, self.pos_embed, self.blocks, self.layers = whole.patch_embed, whole.pos_embed, whole.blocks, layers

    def forward(self, images):
        x, (rows, columns) = self.patch_embed(images)
        positions = self.pos_embed(images.shape[0], rows, columns)
        x, maps = x + positions.reshape(images.shape[0], -1, x.shape[1]).mT, []
        for number, block in enumerate(self.blocks, 1):
            x = block(x, rows, columns)
            if number in self.layers:
                maps.append(as_map(x, rows, columns))
        return maps


class VitTrunk(nn.Module):
    """timm's, for images of any size."""

    def __init__(self, layers, **sizes):
        from timm.models.vision_transformer import VisionTransformer
        super().__init__()
        whole = VisionTransformer(dynamic_img_size=True, **sizes)
        del whole.norm, whole.head
        self.__dict__["whole"], self.layers = whole, layers   # its parts are ours, under their own names
        for name, part in [*whole.named_children(), *whole.named_parameters(recurse=False)]:
            setattr(self, name, part)

    def forward(self, images):
        return self.whole.forward_intermediates(images, indices=[layer - 1 for layer in self.layers], norm=False, stop_early=True,
                                                intermediates_only=True)


class SwinTrunk(nn.Module):
    """timm's, for images of any size, and a norm for each stage. `version`: 1 or 2."""

    def __init__(self, version, **sizes):
        from timm.models.swin_transformer import SwinTransformer
        from timm.models.swin_transformer_v2 import SwinTransformerV2
        super().__init__()
        whole = (SwinTransformer if version == 1 else SwinTransformerV2)(strict_img_size=False, drop_path_rate=0, **sizes)
        self.patch_embed, self.layers = whole.patch_embed, whole.layers
        for stage in range(len(self.layers)):
            self.add_module(f"norm{stage}", nn.LayerNorm(sizes["embed_dim"] * 2 ** stage))

    def forward(self, images):
        x, maps = self.patch_embed(images), []
        for stage, layer in enumerate(self.layers):
            x = layer(x)
            maps.append(getattr(self, f"norm{stage}")(x).permute(0, 3, 1, 2))
        return maps


class SimpleVitTrunk(nn.Module):
    """That of the MSF paper; its positions are those of the map, whatever its size."""

    def __init__(self, layers, **sizes):
        super().__init__()
        whole = R.SimpleViT(classes=1, **sizes)
        del whole.head_norm, whole.head
        self.layers, self.patch = layers, sizes["patch"]
        for name, part in whole.named_children():
            setattr(self, name, part)

    def forward(self, images):
        rows, columns = images.shape[2] // self.patch, images.shape[3] // self.patch
        x = self.embed_norm2(self.embed(self.embed_norm1(R.patchify(images, self.patch))))
        x, maps = x + R.sincos_2d(rows, columns, x.shape[2]), []
        for number, feed_forward in enumerate(self.ff, 1):
            x = x + self.attn[str(number - 1)](x)
            x = x + feed_forward(x)
            if number in self.layers:
                maps.append(as_map(x, rows, columns))
        return maps


class Maps(nn.Module):
    """A trunk, its maps left as they are."""

    def __init__(self, trunk):
        super().__init__()
        self.trunk = trunk

    def forward(self, images):
        return self.trunk(images)


class Pyramid(Maps):
    """Four maps of patches of 8 or 16 pixels at strides 4, 8, 16 and 32."""

    def __init__(self, trunk, dim, patch):
        super().__init__(trunk)
        self.patch = patch
        twice = lambda: nn.ConvTranspose2d(dim, dim, 2, 2)
        if patch == 16:
            self.fpn1 = nn.Sequential(twice(), nn.BatchNorm2d(dim), nn.GELU(), twice())
            self.fpn2 = nn.Sequential(twice())
        else:
            self.fpn1 = nn.Sequential(twice())

    def forward(self, images):
        a, b, c, d = self.trunk(images)
        if self.patch == 16:
            return [self.fpn1(a), self.fpn2(b), c, F.max_pool2d(d, 2)]
        return [self.fpn1(a), b, F.max_pool2d(c, 2), F.max_pool2d(d, 4)]
