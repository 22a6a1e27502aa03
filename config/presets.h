// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "config/trial_config.h"

namespace abl::config {

/// A model by name: its dimensions. What is not listed keeps its default.
struct Preset {
  std::string_view name;
  std::string_view family;
  int dim, depth, heads, dim_head, patch;
  int mlp_dim;  ///< 0: four times dim
  std::string_view sentence;
};

std::span<const Preset> presets();
/// Null when there is none of that name.
const Preset* find_preset(std::string_view name);
/// The dimensions of a preset, everything else as by default.
ModelConfig model_of(const Preset& preset);

}  // namespace abl::config
