// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "config/trial_config.h"

namespace abl::config {

/// The weights that a recipe names, start and teacher: logical name -> SHA-256 of the file, or empty for any
/// of that name.
std::map<std::string, std::string> named_weights(const RecipeConfig& recipe);

}  // namespace abl::config
