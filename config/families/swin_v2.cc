// SPDX-License-Identifier: Apache-2.0
#include "config/families/swin_v2.h"

#include <algorithm>
#include <numeric>

#include "config/model/family.h"
#include "config/model/shape_rules.h"

namespace abl::config {
namespace {

constexpr std::string_view kSwinV2Keys[] = {"dim",          "mlp_ratio",   "patch",
                                            "stage_depths", "stage_heads", "window"};
constexpr std::string_view kSwinV2Sections[] = {"key"};

/// Source: Swin V2 section 3; named as in timm.
std::vector<Preset> swin_v2_presets() {
  return {
      {"swinv2_tiny_window8_256",
       "SwinV2-T, for 256 × 256 images",
       {.dim = 96, .patch = 4, .stage_depths = {2, 2, 6, 2}, .stage_heads = {3, 6, 12, 24}, .window = 8},
       256},
      {"swinv2_base_window12to16_192to256",
       "SwinV2-B of windows of 16, to be started from weights of 12, for 256 × 256 images",
       {.dim = 128,
        .patch = 4,
        .stage_depths = {2, 2, 18, 2},
        .stage_heads = {4, 8, 16, 32},
        .window = 16,
        .pretrained_window = {12, 12, 12, 6}},
       256},
  };
}

const std::vector<Field<ModelConfig>>& swin_v2_fields() {
  using M = ModelConfig;
  static const std::vector<Field<M>> kFields{
      {.name = "pretrained_window",
       .member = &M::pretrained_window,
       .sentence = "Of each stage the side of the windows that initial weights were trained with, "
                   "where `window` is "
                   "another: relative positions keep their scale then. Those of the preset where "
                   "its windows are "
                   "changed and it starts from weights.",
       .range = {1, 1024}},
  };
  return kFields;
}

void check_swin_v2_sizes(const ModelConfig& model, int image_size, std::vector<Problem>& problems) {
  check_patches(model, image_size, problems);
  check_stage_heads(model, problems);
  if (!model.pretrained_window.empty())
    check_length("pretrained_window", model.pretrained_window, model, problems);
}

}  // namespace

std::vector<int> stage_windows(const ModelConfig& model, int image_size) {
  std::vector<int> windows;
  int side = image_size / model.patch;
  for (std::size_t stage = 0; stage < model.stage_depths.size(); ++stage) {
    if (stage > 0) side = (side + 1) / 2;
    windows.push_back(std::min(side, model.window));
  }
  return windows;
}

std::vector<int> trained_windows(const Preset& preset) {
  return preset.sizes.pretrained_window.empty() ? stage_windows(preset.sizes, preset.image_size)
                                                : preset.sizes.pretrained_window;
}

const Preset* swin_v2_preset_of_size(const ModelConfig& model) {
  if (model.family != "swin-v2") return nullptr;
  for (const Preset& preset : presets())
    if (const ModelConfig& sizes = preset.sizes;
        preset.family == model.family && sizes.dim == model.dim && sizes.patch == model.patch &&
        sizes.stage_depths == model.stage_depths && sizes.stage_heads == model.stage_heads)
      return &preset;
  return nullptr;
}

std::vector<int> usual_pretrained_window(const ModelConfig& model, const Preset& preset, int image_size) {
  const auto trained = trained_windows(preset);
  return stage_windows(model, image_size) == trained ? std::vector<int>{} : trained;
}

extern constinit const Family kSwinV2Family{
    .place = 5,
    .name = "swin-v2",
    .sentence = "Swin transformer V2: cosine attention, norms at the end of the branches",
    .keys = kSwinV2Keys,
    .sections = kSwinV2Sections,
    .presets = swin_v2_presets,
    .own_fields = swin_v2_fields,
    .layers =
        [](const ModelConfig& model) {
          return std::reduce(model.stage_depths.begin(), model.stage_depths.end());
        },
    .check_sizes = check_swin_v2_sizes,
};

}  // namespace abl::config
