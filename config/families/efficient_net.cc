// SPDX-License-Identifier: Apache-2.0
#include "config/model/family.h"

namespace abl::config {
namespace {

/// Source: Tan and Le (ICML 2019), Table 1; named as in timm.
std::vector<Preset> efficient_net_presets() {
  return {
      {"efficientnet_b0", "EfficientNet-B0", {}},
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
