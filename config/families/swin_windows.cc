// SPDX-License-Identifier: Apache-2.0
#include "config/families/swin_windows.h"

#include <algorithm>

namespace abl::config {

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

}  // namespace abl::config
