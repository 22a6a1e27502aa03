// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/classifier.h"
#include "models/counting/work.h"

namespace abl::models {

/// One part of a model, with everything inside it.
struct PartCount {
  std::string name;  ///< "blocks.0.attn"; "" for the model itself
  std::string type;  ///< "CrossCovariance"
  std::vector<std::int64_t>
      output;  ///< shape of what it returned, for one image; empty when it was not called
  std::int64_t params_all = 0;
  std::int64_t params_weights = 0;
  Work work;
};

/// The parameters and the work of a model and of each of its parts, the model first, then in the order of
/// registration. The real module runs, once, on one image of the meta device, where that costs no memory and
/// no arithmetic; `model` must have been built there.
/// Throws: c10::NotImplementedError for an operator that has no kernel on the meta device.
std::vector<PartCount> count_parts(Classifier& model, std::int64_t image_size);

}  // namespace abl::models
