// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "config/trial_config.h"
#include "models/backbones/model_options.h"

namespace abl::tasks {

/// A family that this trainer builds: one file of tasks/backbones.
struct Backbone {
  std::string_view family;  ///< its name in config/families
  /// The options of a model of this family, of a configuration in which all fits together.
  models::ModelOptions (*options)(const config::ModelConfig& model, const config::DataConfig& data);
};

std::span<const Backbone* const> all_backbones();

}  // namespace abl::tasks
