// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "models/backbones/model_options.h"

namespace abl::models {

using NamedOptions = std::vector<std::pair<std::string, ModelOptions>>;

/// A small model of each family, for images of 64 x 64 pixels and ten classes: what tests of all families
/// take.
inline NamedOptions& small_models() {
  static NamedOptions models;
  return models;
}

/// Those of them that can compute blocks again.
inline NamedOptions& small_transformers() {
  static NamedOptions models;
  return models;
}

/// Adds one. It stands beside the tests of its family:
///   const SmallModel kSmallVit{"vit", VitOptions{…}};
struct SmallModel {
  template <FamilyOptions Options>
  SmallModel(const std::string& name, const Options& options) {
    small_models().emplace_back(name, options);
    if constexpr (WithBlocks<Options>) small_transformers().emplace_back(name, options);
  }
};

inline ModelOptions small_model(const std::string& wanted) {
  for (const auto& [name, options] : small_models())
    if (name == wanted) return options;
  throw std::out_of_range{wanted};
}

}  // namespace abl::models
