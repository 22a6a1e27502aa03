// SPDX-License-Identifier: Apache-2.0
#include "config/model/family.h"
#include "config/model/shape_rules.h"

namespace abl::config {
namespace {

constexpr std::string_view kRegNetKeys[] = {"stage_depths", "stage_widths"};

ModelConfig reg_net_sizes(const std::vector<int>& depths, const std::vector<int>& widths, int group_width) {
  return {.stage_depths = depths, .stage_widths = widths, .group_width = group_width};
}

/// Source: Radosavovic et al. (CVPR 2020), Figure 11; named as in timm.
std::vector<Preset> reg_net_presets() {
  return {
      {"regnety_002", "RegNetY-200MF", reg_net_sizes({1, 1, 4, 7}, {24, 56, 152, 368}, 8)},
      {"regnety_004", "RegNetY-400MF", reg_net_sizes({1, 3, 6, 6}, {48, 104, 208, 440}, 8)},
      {"regnety_006", "RegNetY-600MF", reg_net_sizes({1, 3, 7, 4}, {48, 112, 256, 608}, 16)},
      {"regnety_008", "RegNetY-800MF", reg_net_sizes({1, 3, 8, 2}, {64, 128, 320, 768}, 16)},
      {"regnety_016", "RegNetY-1.6GF", reg_net_sizes({2, 6, 17, 2}, {48, 120, 336, 888}, 24)},
      {"regnety_032", "RegNetY-3.2GF", reg_net_sizes({2, 5, 13, 1}, {72, 216, 576, 1512}, 24)},
      {"regnety_040", "RegNetY-4GF", reg_net_sizes({2, 6, 12, 2}, {128, 192, 512, 1088}, 64)},
      {"regnety_064", "RegNetY-6.4GF", reg_net_sizes({2, 7, 14, 2}, {144, 288, 576, 1296}, 72)},
      {"regnety_080", "RegNetY-8GF", reg_net_sizes({2, 4, 10, 1}, {168, 448, 896, 2016}, 56)},
      {"regnety_120", "RegNetY-12GF", reg_net_sizes({2, 5, 11, 1}, {224, 448, 896, 2240}, 112)},
      {"regnety_160", "RegNetY-16GF", reg_net_sizes({2, 4, 11, 1}, {224, 448, 1232, 3024}, 112)},
      {"regnety_320", "RegNetY-32GF", reg_net_sizes({2, 5, 12, 1}, {232, 696, 1392, 3712}, 232)},
  };
}

const std::vector<Field<ModelConfig>>& reg_net_fields() {
  using M = ModelConfig;
  static const std::vector<Field<M>> kFields{
      {.name = "group_width",
       .member = &M::group_width,
       .sentence = "Width of a group of the 3 × 3 convolutions; divides the widths of all stages.",
       .range = {1, 65536},
       .required = true,
       .derived_text = "the preset's",
       .after = "base_width"},
  };
  return kFields;
}

void check_reg_net_sizes(const ModelConfig& model, int, std::vector<Problem>& problems) {
  if (!check_length("stage_widths", model.stage_widths, model, problems)) return;
  for (std::size_t i = 0; i < model.stage_widths.size(); ++i) {
    const auto key = fmt::format("stage_widths.{}", i + 1);
    const int width = model.stage_widths[i];
    if (model.group_width != 0 && width % model.group_width != 0)
      complain(problems, key, "groups of {} do not divide the width {} of stage {}", model.group_width, width,
               i + 1);
    if (width < 3)
      complain(problems, key, "{} channels leave none for squeeze and excitation, which takes a quarter",
               width);
  }
}

}  // namespace

extern constinit const Family kRegNetFamily{
    .place = 9,
    .name = "regnet",
    .sentence = "RegNetY",
    .keys = kRegNetKeys,
    .presets = reg_net_presets,
    .own_fields = reg_net_fields,
    .has_batch_norm = [](const ModelConfig&) { return true; },
    .check_sizes = check_reg_net_sizes,
};

}  // namespace abl::config
