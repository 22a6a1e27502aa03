// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "models/counting/counter.h"

namespace abl::models {

/// How a paper's FLOPs deviate from plain counting of the model that is trained. Off unless asked for: a
/// convention is for comparison with that paper's tables, and is printed beside the count.
struct Convention {
  std::string_view name;
  std::string_view meaning;  ///< a sentence
  std::string_view source;
  int batch_norm;  ///< what a batch-normalised element costs: the convention is one of fvcore's counts
  /// Changes the work of the parts concerned and of all that contain them; leaves other models as they are.
  void (*apply)(std::vector<PartCount>& parts);
};

std::span<const Convention> conventions();
/// Null when there is none of that name.
const Convention* find_convention(std::string_view name);

}  // namespace abl::models
