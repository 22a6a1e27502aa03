// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "models/choices/drop_path.h"

namespace abl::models {

/// Stochastic depth of a model; by default there is none.
struct DropPathOptions {
  double rate = 0;  ///< probability that an image's branch is left out; at least 0, below 1
  DropPathRule rule = DropPathRule::kLinear;
};

/// The rates of so many layers, in their order.
/// Throws: c10::ValueError when the rate is not a probability below 1.
std::vector<double> drop_rates(const DropPathOptions& options, std::int64_t layers);

/// Leaves a residual branch out for some images, and divides it by 1 - rate for the others, so that its
/// expectation is kept. In evaluation and at rate 0 it is the branch itself, and no random number is drawn.
/// Draws one number for each image, of the branch's type, from the default generator of its device.
/// Shape: branch [B, ...] -> the same.
/// Source: "Deep networks with stochastic depth", section 3; image by image as timm's `drop_path`, whose
///         draws these are.
torch::Tensor drop_path(const torch::Tensor& branch, double rate, bool is_training);

}  // namespace abl::models
