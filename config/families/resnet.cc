// SPDX-License-Identifier: Apache-2.0
#include "config/model/family.h"
#include "config/model/shape_rules.h"

namespace abl::config {
namespace {

constexpr std::string_view kResnetKeys[] = {"stage_depths", "stage_widths"};

/// Source: He et al. (CVPR 2016), Table 1; Xie et al. (CVPR 2017), Table 1; Zagoruyko and Komodakis (BMVC
/// 2016), section 3; named as in timm.
std::vector<Preset> resnet_presets() {
  return {
      {"resnet18", "ResNet-18", {.stage_depths = {2, 2, 2, 2}, .bottleneck = false}},
      {"resnet34", "ResNet-34", {.stage_depths = {3, 4, 6, 3}, .bottleneck = false}},
      {"resnet50", "ResNet-50", {.stage_depths = {3, 4, 6, 3}}},
      {"resnet101", "ResNet-101", {.stage_depths = {3, 4, 23, 3}}},
      {"resnet152", "ResNet-152", {.stage_depths = {3, 8, 36, 3}}},
      {"wide_resnet50_2",
       "ResNet-50 with 3 × 3 convolutions of twice the width",
       {.stage_depths = {3, 4, 6, 3}, .base_width = 128}},
      {"wide_resnet101_2",
       "ResNet-101 with 3 × 3 convolutions of twice the width",
       {.stage_depths = {3, 4, 23, 3}, .base_width = 128}},
      {"resnext50_32x4d",
       "ResNeXt-50 (32 × 4)",
       {.stage_depths = {3, 4, 6, 3}, .cardinality = 32, .base_width = 4}},
      {"resnext101_32x4d",
       "ResNeXt-101 (32 × 4)",
       {.stage_depths = {3, 4, 23, 3}, .cardinality = 32, .base_width = 4}},
      {"resnext101_32x8d",
       "ResNeXt-101 (32 × 8)",
       {.stage_depths = {3, 4, 23, 3}, .cardinality = 32, .base_width = 8}},
      {"resnext101_64x4d",
       "ResNeXt-101 (64 × 4)",
       {.stage_depths = {3, 4, 23, 3}, .cardinality = 64, .base_width = 4}},
  };
}

const std::vector<Field<ModelConfig>>& resnet_fields() {
  using M = ModelConfig;
  static const std::vector<Field<M>> kFields{
      {.name = "bottleneck",
       .member = &M::bottleneck,
       .sentence = "Whether a block is a bottleneck of three convolutions, whose output is 4 times as wide, "
                   "or two 3 × 3 convolutions, as in ResNet-18 and 34."},
      {.name = "cardinality",
       .member = &M::cardinality,
       .sentence = "Groups of the 3 × 3 convolutions (ResNeXt).",
       .range = {1, 1024}},
      {.name = "base_width",
       .member = &M::base_width,
       .sentence = "Width of one such group in the first stage.",
       .range = {1, 1024}},
  };
  return kFields;
}

/// 64 channels, and twice as many in each further stage.
std::vector<int> resnet_widths(const ModelConfig& model) {
  std::vector<int> widths;
  for (std::size_t stage = 0; stage < model.stage_depths.size(); ++stage) widths.push_back(64 << stage);
  return widths;
}

void check_resnet_sizes(const ModelConfig& model, int, std::vector<Problem>& problems) {
  if (model.stage_depths.size() != 4)
    return complain(problems, "stage_depths", "{} stages; a resnet has 4", model.stage_depths.size());
  if (!check_length("stage_widths", model.stage_widths, model, problems)) return;
  if (!model.bottleneck && model.cardinality != 1)
    complain(problems, "cardinality", "{} groups of a block without bottleneck, which has 1",
             model.cardinality);
  if (!model.bottleneck && model.base_width != 64)
    complain(problems, "base_width", "{} of a block without bottleneck, which has 64", model.base_width);
  for (std::size_t i = 0; i < model.stage_widths.size(); ++i) {
    if (const int width = model.stage_widths[i]; std::int64_t{width} * model.base_width < 64)
      complain(problems, fmt::format("stage_widths.{}", i + 1),
               "no channel is left of {} × base_width {} / 64 in stage {}", width, model.base_width, i + 1);
  }
}

}  // namespace

extern constinit const Family kResnetFamily{
    .place = 7,
    .name = "resnet",
    .sentence = "ResNet and ResNeXt",
    .keys = kResnetKeys,
    .maps = MapsOf::kStages,
    .presets = resnet_presets,
    .own_fields = resnet_fields,
    .has_batch_norm = [](const ModelConfig&) { return true; },
    .usual_widths = resnet_widths,
    .check_sizes = check_resnet_sizes,
};

}  // namespace abl::config
