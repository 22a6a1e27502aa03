# SPDX-License-Identifier: Apache-2.0
"""The vision transformer with a class token, timm's."""
from choices import TIMM
from large import presets_of_timm

NAME, FAMILY = "vit", "vit"
WORDS = dict(TIMM, init_values="layer_scale", no_embed_class="class_position", distilled="distillation_token")
VALUES = dict(class_position={True: False, False: True})
FIELDS = dict(qkv_bias="has_qkv_bias", class_position="has_class_position", distillation_token="has_distillation_token")
PASSED_ON = {"VitOptions.has_qkv_bias": "QkvOptions.bias"}
FEATURES = r"patch_embed|blocks\.\d+|norm"
GRADIENTS = (r"cls_token|pos_embed|patch_embed\.proj\.weight|blocks\.0\.(norm1\.weight|attn\..*)|blocks\.1\.mlp\.fc1\.weight"
             r"|norm\.bias|head\.weight")


def cases():
    from timm.models.deit import VisionTransformerDistilled
    from timm.models.vision_transformer import VisionTransformer
    out = []

    def add(name, **sizes):
        config = dict(dict(img_size=32, patch_size=8, embed_dim=48, depth=2, num_heads=3, num_classes=10), **sizes)
        out.append((name, "timm", config, lambda: VisionTransformer(**config)))

    add("timm_vit_small_case")
    add("timm_vit_no_qkv_bias", qkv_bias=False)
    add("timm_vit_layer_scale", init_values=0.1)
    add("timm_vit_class_without_position", no_embed_class=True)
    distilled = dict(img_size=32, patch_size=8, embed_dim=48, depth=2, num_heads=3, num_classes=10)
    out.append(("timm_vit_distilled", "timm", dict(distilled, distilled=True), lambda: VisionTransformerDistilled(**distilled)))
    deit_3 = dict(distilled, no_embed_class=True, init_values=0.3)
    out.append(("timm_vit_distilled_deit_3", "timm", dict(deit_3, distilled=True), lambda: one_position_each(**deit_3)))
    add("timm_vit_sizes", img_size=48, patch_size=16, embed_dim=24, depth=1, num_heads=4, num_classes=7, mlp_ratio=2)
    return out


def one_position_each(**sizes):
    """timm's table has places for both tokens, whatever is said of the class token; then it could not be added."""
    import torch
    from timm.models.deit import VisionTransformerDistilled
    model = VisionTransformerDistilled(**sizes)
    model.pos_embed = torch.nn.Parameter(model.pos_embed[:, model.num_prefix_tokens:].detach().clone())
    return model


def large_cases():
    return presets_of_timm("deit_tiny_distilled_patch16_224", "deit3_small_patch16_224", "vit_tiny_patch16_224", "vit_small_patch16_224", "vit_base_patch16_224")
