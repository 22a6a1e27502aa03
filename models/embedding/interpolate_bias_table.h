// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

namespace abl::models {

/// Swin's learned biases for another window: bicubic over the map of relative positions, as the release
/// resizes them.
/// Shape: table [(2·old - 1)², heads] -> [(2·window - 1)², heads].
/// Throws: c10::ValueError when the table is of no square map.
torch::Tensor interpolate_bias_table(const torch::Tensor& table, std::int64_t window);

}  // namespace abl::models
