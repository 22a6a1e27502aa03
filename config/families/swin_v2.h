// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "config/model/family.h"
#include "config/trial_config.h"

namespace abl::config {

/// Of each stage of a Swin transformer the side of its windows, in tokens: `window`, or all of a smaller map.
std::vector<int> stage_windows(const ModelConfig& model, int image_size);

/// Of each stage the windows that the weights of a SwinV2 preset were trained with.
std::vector<int> trained_windows(const Preset& preset);

/// The SwinV2 preset of a model's sizes, whatever its windows and images; null where there is none.
const Preset* swin_v2_preset_of_size(const ModelConfig& model);

/// What a model that starts from weights is to have as `pretrained_window` where nothing is said: the windows
/// of its preset's weights where its own are others, since relative positions keep their scale only then;
/// otherwise none.
std::vector<int> usual_pretrained_window(const ModelConfig& model, const Preset& preset, int image_size);

}  // namespace abl::config
