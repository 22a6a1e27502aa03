// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/trial_config.h"

namespace abl::commands {

/// Where the names of a model's classes come from; nothing where both are empty.
struct ClassNames {
  /// One name a line, or JSON: a list of names, or an object of them by number, where a name may be the last
  /// of a list (ImageNet's class index: {"0": ["n01440764", "tench"], …}).
  std::filesystem::path file;
  std::string data_root;  ///< the folder of the trial's data set

  /// Class by class; empty where none are asked for.
  /// Throws: Error naming file, line or key, and how many names the model's classes need.
  std::vector<std::string> of(const config::DataConfig& data) const;
};

}  // namespace abl::commands
