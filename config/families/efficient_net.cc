// SPDX-License-Identifier: Apache-2.0
#include "config/model/family.h"

namespace abl::config {
namespace {

ModelConfig scaled_b0(double width, double depth) { return {.width_factor = width, .depth_factor = depth}; }

/// Source: Tan and Le (ICML 2019), Table 1, and their release; named as in timm, and for images of the size
/// that they have there.
std::vector<Preset> efficient_net_presets() {
  return {
      {"efficientnet_b0", "EfficientNet-B0", {}},
      {"efficientnet_b1", "EfficientNet-B1, for 240 × 240 images", {.depth_factor = 1.1}, 240},
      {"efficientnet_b2", "EfficientNet-B2, for 256 × 256 images", scaled_b0(1.1, 1.2), 256},
      {"efficientnet_b3", "EfficientNet-B3, for 288 × 288 images", scaled_b0(1.2, 1.4), 288},
      {"efficientnet_b4", "EfficientNet-B4, for 320 × 320 images", scaled_b0(1.4, 1.8), 320},
      {"efficientnet_b5", "EfficientNet-B5, for 448 × 448 images", scaled_b0(1.6, 2.2), 448},
      {"efficientnet_b6", "EfficientNet-B6, for 528 × 528 images", scaled_b0(1.8, 2.6), 528},
      {"efficientnet_b7", "EfficientNet-B7, for 600 × 600 images", scaled_b0(2.0, 3.1), 600},
  };
}

const std::vector<Field<ModelConfig>>& efficient_net_fields() {
  using M = ModelConfig;
  static const std::vector<Field<M>> kFields{
      {.name = "width_factor",
       .member = &M::width_factor,
       .sentence = "Factor of the channels of EfficientNet-B0; the products are rounded to multiples of 8.",
       .range = {0.05, 100}},
      {.name = "depth_factor",
       .member = &M::depth_factor,
       .sentence = "Factor of the blocks in each stage of EfficientNet-B0; the products are rounded up.",
       .range = {0.05, 100}},
  };
  return kFields;
}

}  // namespace

extern constinit const Family kEfficientNetFamily{
    .place = 8,
    .name = "efficientnet",
    .sentence = "EfficientNet-B0, and by factors its larger relatives",
    .keys = {},
    .presets = efficient_net_presets,
    .own_fields = efficient_net_fields,
    .has_batch_norm = [](const ModelConfig&) { return true; },
};

}  // namespace abl::config
