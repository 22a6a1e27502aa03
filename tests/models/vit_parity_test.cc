// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "models/backbones/vit.h"
#include "tests/models/parity_case.h"

namespace abl::models {
namespace {

class VitParity : public ::testing::TestWithParam<std::string> {};

TEST_P(VitParity, IsTimms) {
  const ParityCase reference{GetParam()};
  const auto config = reference.config();
  VitImpl model{{.image_size = config.at("img_size"),
                 .patch = config.at("patch_size"),
                 .classes = config.at("num_classes"),
                 .dim = config.at("embed_dim"),
                 .depth = config.at("depth"),
                 .heads = config.at("num_heads"),
                 .mlp_ratio = config.value("mlp_ratio", 4),
                 .has_qkv_bias = config.value("qkv_bias", true),
                 .layer_scale = config.value("init_values", 0.0),
                 .has_class_position = !config.value("no_embed_class", false),
                 .has_distillation_token = config.value("distilled", false)}};
  expect_parity(model, reference);
}

INSTANTIATE_TEST_SUITE_P(Vit, VitParity,
                         ::testing::Values("timm_vit_small_case", "timm_vit_no_qkv_bias", "timm_vit_sizes",
                                           "timm_vit_layer_scale", "timm_vit_class_without_position",
                                           "timm_vit_distilled", "timm_vit_distilled_deit_3"),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace abl::models
