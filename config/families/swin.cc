// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "config/model/family.h"
#include "config/model/layer_sections.h"
#include "config/model/shape_rules.h"

namespace abl::config {
namespace {

constexpr std::string_view kSwinKeys[] = {"dim",          "mlp_ratio",   "patch",
                                          "stage_depths", "stage_heads", "window"};
constexpr std::string_view kSwinSections[] = {"attention", "key"};

constexpr int kSwinWindow = 7, kLargeSwinWindow = 12;

ModelConfig swin_b(int window) {
  return {
      .dim = 128, .patch = 4, .stage_depths = {2, 2, 18, 2}, .stage_heads = {4, 8, 16, 32}, .window = window};
}

ModelConfig swin_l(int window) {
  return {.dim = 192,
          .patch = 4,
          .stage_depths = {2, 2, 18, 2},
          .stage_heads = {6, 12, 24, 48},
          .window = window};
}

/// Source: Swin section 3.3; named as in timm.
std::vector<Preset> swin_presets() {
  return {
      {"swin_tiny_patch4_window7_224",
       "Swin-T",
       {.dim = 96, .patch = 4, .stage_depths = {2, 2, 6, 2}, .stage_heads = {3, 6, 12, 24}}},
      {"swin_small_patch4_window7_224",
       "Swin-S",
       {.dim = 96, .patch = 4, .stage_depths = {2, 2, 18, 2}, .stage_heads = {3, 6, 12, 24}}},
      {"swin_base_patch4_window7_224", "Swin-B", swin_b(kSwinWindow)},
      {"swin_base_patch4_window12_384", "Swin-B for 384 × 384 images", swin_b(kLargeSwinWindow), 384},
      {"swin_large_patch4_window7_224", "Swin-L", swin_l(kSwinWindow)},
      {"swin_large_patch4_window12_384", "Swin-L for 384 × 384 images", swin_l(kLargeSwinWindow), 384},
  };
}

/// Layers of Swin in which both the key and the attention are chosen: an attention has one ablation or the
/// other.
void check_one_ablation(const ModelConfig& model, std::vector<Problem>& problems) {
  const std::size_t count = std::min(model.key.size(), model.attention.size());
  std::vector<bool> both(count, false);
  for (std::size_t i = 0; i < count; ++i)
    both[i] =
        model.key[i].method != models::KeyMethod::kLinear && model.attention[i] != models::AttentionChoice{};
  if (std::ranges::find(both, true) == both.end()) return;
  problems.push_back(
      {"model.key",
       fmt::format("in layers {} model.key asks for a key that is not linear, and model.attention for an "
                   "attention that is not the original; one of them must be left as it is",
                   layers_text(both)),
       {}});
}

void check_swin_sizes(const ModelConfig& model, int image_size, std::vector<Problem>& problems) {
  check_patches(model, image_size, problems);
  check_stage_heads(model, problems);
}

}  // namespace

extern constinit const Family kSwinFamily{
    .place = 4,
    .name = "swin",
    .sentence = "Swin transformer: attention in windows, in stages",
    .keys = kSwinKeys,
    .sections = kSwinSections,
    .maps = MapsOf::kStages,
    .presets = swin_presets,
    .layers =
        [](const ModelConfig& model) {
          return std::reduce(model.stage_depths.begin(), model.stage_depths.end());
        },
    .check_layers = check_one_ablation,
    .check_sizes = check_swin_sizes,
};

}  // namespace abl::config
