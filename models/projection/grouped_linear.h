// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include "models/choices/attention.h"

namespace abl::models {

/// Where a projection stands among those that lie side by side.
struct FusedPlace {
  std::int64_t index = 0, count = 1;
};

/// A projection whose inputs are cut into G contiguous groups; it keeps 1/G of the weights. Rows of `weight`
/// are stored group after group, the elements of `bias` in the order of the outputs.
/// `place`: matters to kFusedBlock alone: of 4 projections and 2 groups, the first two see the first half of
/// x. G divides `in` and `out`.
/// Shape: x [..., in], weight [out, in/G], bias [out] or undefined -> [..., out].
/// Source: MSF section 2.3.
torch::Tensor grouped_linear(const torch::Tensor& x, const torch::Tensor& weight, std::int64_t groups,
                             Layout layout, const torch::Tensor& bias = {}, FusedPlace place = {});

}  // namespace abl::models
