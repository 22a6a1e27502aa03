// SPDX-License-Identifier: Apache-2.0
#include "config/model/family.h"
#include "config/model/shape_rules.h"

namespace abl::config {
namespace {

constexpr std::string_view kRegNetKeys[] = {"stage_depths", "stage_widths"};

/// Source: Radosavovic et al. (CVPR 2020), Figure 11; named as in timm.
std::vector<Preset> reg_net_presets() {
  return {
      {"regnety_160",
       "RegNetY-16GF",
       {.stage_depths = {2, 4, 11, 1}, .stage_widths = {224, 448, 1232, 3024}, .group_width = 112}},
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
