# SPDX-License-Identifier: Apache-2.0
"""Cases at the sizes that the papers print: what our presets are. `config` has the `model` section of a trial's document, from
which the C++ model is built, and the image size."""
import reference_models as R

TIMM = ("vit_tiny_patch16_224", "vit_small_patch16_224", "vit_base_patch16_224", "swin_tiny_patch4_window7_224",
        "swin_small_patch4_window7_224", "swinv2_tiny_window8_256", "xcit_nano_12_p16_224", "xcit_tiny_12_p8_224",
        "xcit_small_12_p16_224", "xcit_tiny_24_p16_224", "xcit_tiny_12_p16_224", "xcit_small_24_p8_224", "xcit_medium_24_p16_224",
        "xcit_large_24_p8_224", "resnet50", "resnet101", "resnext50_32x4d", "resnext101_32x8d",
        "efficientnet_b0", "regnety_160")

# Of models this large a few gradients tell enough: those of the first layers, which depend on all others, and one of each kind.
SWIN = (r"patch_embed\.proj\.weight|layers\.0\.blocks\.1\.attn\..*|layers\.1\.(downsample\..*|blocks\.0\.mlp\.fc2\.bias)"
        r"|norm\.weight|head\.fc\.weight")
GRADIENTS = {
    "msf": r"embed\.weight|attn\.(0|11)\..*|ff\.1\.fc1\.weight|head_norm\.bias|head\.weight",
    "keyvit": r"cls|pos|embed\.weight|attn\.0\.(norm\.weight|to_q\.weight|key\..*)|attn\.11\.key\..*|ff\.1\.fc1\.weight"
              r"|head\.weight",
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


def simple_vit(choice, dim=384, heads=6):
    attention = dict(kernel="dot", probe="none", share="QKV-W", groups=1, layout="interleaved", tied_weight_scale=1.0)
    return R.SimpleViT(image_size=224, patch=16, classes=1000, dim=dim, heads=heads, dim_head=64, mlp_dim=4 * dim,
                       attention=[dict(attention, **choice)] * 12)


def of_papers():
    """ViT-S and ViT-B of the MSF and of the manifold key paper, ViT-S also with what each puts into it."""
    def config(preset, **section):
        return dict(model=dict(section, preset=preset), input_size=224)

    mean_shift = dict(kernel="gaussian", probe="inside", share="QKVPW")
    return [
        ("ref_msf_simple-vit-s", "reference_models", config("simple-vit-s"), lambda: simple_vit({})),
        ("ref_msf_simple-vit-s_mean_shift", "reference_models", config("simple-vit-s", attention=mean_shift),
         lambda: simple_vit(mean_shift)),
        ("ref_msf_simple-vit-b", "reference_models", config("simple-vit-b"), lambda: simple_vit({}, dim=768, heads=12)),
        ("ref_keyvit_key-vit-s", "reference_models", config("key-vit-s"), lambda: R.KeyViT(kind="none")),
        ("ref_keyvit_key-vit-s_spatialk", "reference_models", config("key-vit-s", key=dict(method="spatialk")),
         lambda: R.KeyViT(kind="spatial", charts=8)),
        ("ref_keyvit_key-vit-b", "reference_models", config("key-vit-b"), lambda: R.KeyViT(dim=768, heads=12, kind="none")),
    ]


def cases():
    import timm
    return [("timm_" + name, "timm", dict(model=dict(preset=name), input_size=size_of(name)),
             lambda name=name: timm.create_model(name, pretrained=False)) for name in TIMM] + of_papers()
