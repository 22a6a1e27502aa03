# SPDX-License-Identifier: Apache-2.0
"""Cases at the sizes that the papers print: timm's models by name. `config` has that name alone."""

NAMES = ("vit_tiny_patch16_224", "vit_small_patch16_224", "swin_tiny_patch4_window7_224", "swinv2_tiny_window8_256",
         "xcit_nano_12_p16_224", "xcit_tiny_12_p8_224", "resnet50", "resnext50_32x4d", "efficientnet_b0", "regnety_160")

# Of models this large a few gradients tell enough: those of the first layers, which depend on all others, and one of each kind.
SWIN = (r"patch_embed\.proj\.weight|layers\.0\.blocks\.1\.attn\..*|layers\.1\.(downsample\..*|blocks\.0\.mlp\.fc2\.bias)"
        r"|norm\.weight|head\.fc\.weight")
GRADIENTS = {
    "vit": r"cls_token|pos_embed|patch_embed\.proj\.weight|blocks\.0\.(norm1\.weight|attn\..*)|blocks\.1\.mlp\.fc1\.weight"
           r"|norm\.bias|head\.weight",
    "swin": SWIN,
    "swinv2": SWIN,
    "xcit": r"cls_token|patch_embed\.proj\.0\..*|pos_embed\.token_projection\.weight|blocks\.0\..*"
            r"|cls_attn_blocks\.(0\.attn\.q\.weight|1\.gamma2)|head\.weight",
    "resn": r"conv1\.weight|bn1\.weight|layer1\.0\.(conv2\.weight|downsample\.0\.weight)|layer2\.0\.bn3\.bias"
            r"|layer4\.2\.conv3\.weight|fc\.(weight|bias)",
    "efficientnet": r"conv_stem\.weight|bn1\.bias|blocks\.0\.0\.conv_dw\.weight|blocks\.1\.0\.se\..*|blocks\.2\.0\.conv_pwl\.weight"
                    r"|conv_head\.weight|classifier\.weight",
    "regnety": r"stem\.conv\.weight|s1\.b1\.(conv2\.conv\.weight|se\..*|downsample\..*)|s2\.b1\.conv3\.bn\.bias"
               r"|s4\.b1\.conv1\.conv\.weight|head\.fc\.weight",
}


def size_of(name):
    return 256 if name.endswith("_256") else 224


def cases():
    import timm
    return [("timm_" + name, "timm", dict(model=name, input_size=size_of(name)),
             lambda name=name: timm.create_model(name, pretrained=False)) for name in NAMES]
