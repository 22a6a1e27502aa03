// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/trial_config.h"

namespace abl::config {

/// A kind of backbone: what its models have in common beside their sizes.
struct Family {
  std::string_view name;
  std::string_view sentence;
};

std::span<const Family> families();
std::vector<std::string> family_names();

/// Whether what is of meaning for the families `listed` (none: for all) is so for `family`. Of a family that
/// is not known (empty) everything is.
bool is_for(const std::vector<std::string>& listed, const std::string& family);

/// "simple-vit, swin and swin-v2".
std::string all_of(const std::vector<std::string>& names);

/// A model by name. What is not listed keeps its default.
struct Preset {
  std::string_view name;
  std::string_view family;
  std::string_view sentence;
  ModelConfig sizes;     ///< without name and family: see model_of
  int image_size = 224;  ///< of the images it is made for
  /// Whether data.image_size follows it where neither document nor data set settles that. Not so for a model
  /// that is made for the size of a data set.
  bool gives_image_size = true;
};

/// Family by family.
const std::vector<Preset>& presets();
/// Null when there is none of that name.
const Preset* find_preset(std::string_view name);
/// What a preset sets, with its name and family; everything else as by default.
ModelConfig model_of(const Preset& preset);

}  // namespace abl::config
