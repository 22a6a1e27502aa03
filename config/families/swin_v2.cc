// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "config/json.h"
#include "config/model/family.h"
#include "config/model/shape_rules.h"

namespace abl::config {
namespace {

constexpr std::string_view kSwinV2Keys[] = {"dim",          "mlp_ratio",   "patch",
                                            "stage_depths", "stage_heads", "window"};
constexpr std::string_view kSwinV2Sections[] = {"key"};

ModelConfig swin_v2_sizes(int dim, int blocks, const std::vector<int>& heads, int window) {
  return {.dim = dim, .patch = 4, .stage_depths = {2, 2, blocks, 2}, .stage_heads = heads, .window = window};
}
ModelConfig swin_v2_t(int window) { return swin_v2_sizes(96, 6, {3, 6, 12, 24}, window); }
ModelConfig swin_v2_s(int window) { return swin_v2_sizes(96, 18, {3, 6, 12, 24}, window); }
ModelConfig swin_v2_b(int window) { return swin_v2_sizes(128, 18, {4, 8, 16, 32}, window); }
ModelConfig swin_v2_l(int window) { return swin_v2_sizes(192, 18, {6, 12, 24, 48}, window); }

/// To be started from weights of windows of 12, of images of 192 pixels.
ModelConfig from_12(ModelConfig model) {
  model.pretrained_window = {12, 12, 12, 6};
  return model;
}

/// Source: Swin V2 section 3; named as in timm.
std::vector<Preset> swin_v2_presets() {
  return {
      {"swinv2_tiny_window8_256", "SwinV2-T, for 256 × 256 images", swin_v2_t(8), 256},
      {"swinv2_tiny_window16_256", "SwinV2-T of windows of 16, for 256 × 256 images", swin_v2_t(16), 256},
      {"swinv2_small_window8_256", "SwinV2-S, for 256 × 256 images", swin_v2_s(8), 256},
      {"swinv2_small_window16_256", "SwinV2-S of windows of 16, for 256 × 256 images", swin_v2_s(16), 256},
      {"swinv2_base_window8_256", "SwinV2-B, for 256 × 256 images", swin_v2_b(8), 256},
      {"swinv2_base_window16_256", "SwinV2-B of windows of 16, for 256 × 256 images", swin_v2_b(16), 256},
      {"swinv2_base_window12_192", "SwinV2-B of windows of 12, for 192 × 192 images", swin_v2_b(12), 192},
      {"swinv2_base_window12to16_192to256",
       "SwinV2-B of windows of 16, to be started from weights of 12, for 256 × 256 images",
       from_12(swin_v2_b(16)), 256},
      {"swinv2_base_window12to24_192to384",
       "SwinV2-B of windows of 24, to be started from weights of 12, for 384 × 384 images",
       from_12(swin_v2_b(24)), 384},
      {"swinv2_large_window12_192", "SwinV2-L of windows of 12, for 192 × 192 images", swin_v2_l(12), 192},
      {"swinv2_large_window12to16_192to256",
       "SwinV2-L of windows of 16, to be started from weights of 12, for 256 × 256 images",
       from_12(swin_v2_l(16)), 256},
      {"swinv2_large_window12to24_192to384",
       "SwinV2-L of windows of 24, to be started from weights of 12, for 384 × 384 images",
       from_12(swin_v2_l(24)), 384},
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

/// Of each stage the side of its windows, in tokens: `window`, or all of a smaller map.
std::vector<int> stage_windows(const ModelConfig& model, int image_size) {
  std::vector<int> windows;
  int side = image_size / model.patch;
  for (std::size_t stage = 0; stage < model.stage_depths.size(); ++stage) {
    if (stage > 0) side = (side + 1) / 2;
    windows.push_back(std::min(side, model.window));
  }
  return windows;
}

/// Of each stage the windows that the weights of a preset were trained with.
std::vector<int> trained_windows(const Preset& preset) {
  return preset.sizes.pretrained_window.empty() ? stage_windows(preset.sizes, preset.image_size)
                                                : preset.sizes.pretrained_window;
}

/// `pretrained_window` where nothing is said: the windows of the preset's weights where the model's own are
/// others, since relative positions keep their scale only then; otherwise none.
void assume_trained_windows(ModelConfig& model, const Preset& preset, int image_size) {
  if (!model.pretrained_window.empty()) return;
  const auto trained = trained_windows(preset);
  if (stage_windows(model, image_size) == trained) return;
  model.pretrained_window = trained;
  model.assumes_window = true;
}

/// SwinV2's relative positions have the scale of the windows that its weights were trained with, which the
/// weights do not say.
void doubt_windows(const ModelConfig& model, const std::string& weights, int image_size,
                   std::vector<Problem>& doubts) {
  const Preset* preset = find_preset(model.preset);
  const auto own = stage_windows(model, image_size);
  if (model.assumes_window)
    doubts.push_back(
        {"model.pretrained_window",
         fmt::format(
             "{} is assumed, the windows of {}; set model.pretrained_window if '{}' was trained with others",
             plain_text(model.pretrained_window), model.preset, weights),
         {}});
  else if (model.pretrained_window.empty() && !(preset && trained_windows(*preset) == own))
    doubts.push_back({"model.pretrained_window",
                      fmt::format("the windows of '{}' are taken to be those of this model, {}; set "
                                  "model.pretrained_window if they are others",
                                  weights, plain_text(own)),
                      {}});
}

}  // namespace

extern constinit const Family kSwinV2Family{
    .place = 5,
    .name = "swin-v2",
    .sentence = "Swin transformer V2: cosine attention, norms at the end of the branches",
    .keys = kSwinV2Keys,
    .sections = kSwinV2Sections,
    .maps = MapsOf::kStages,
    .presets = swin_v2_presets,
    .own_fields = swin_v2_fields,
    .layers =
        [](const ModelConfig& model) {
          return std::reduce(model.stage_depths.begin(), model.stage_depths.end());
        },
    .check_sizes = check_swin_v2_sizes,
    .assume_of_weights = assume_trained_windows,
    .doubt_weights = doubt_windows,
};

}  // namespace abl::config
