// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

namespace abl::models {

/// A learned table of positions for another image size: the entries of the leading `extra` tokens (class
/// token) stay, those of a square map are resized to rows × columns by antialiased bicubic interpolation.
/// Shape: table [1, extra + S·S, dim] -> [1, extra + rows·columns, dim].
/// Throws: c10::ValueError when the table is of no square map, or the new map is empty.
torch::Tensor interpolate_positions(const torch::Tensor& table, std::int64_t rows, std::int64_t columns,
                                    std::int64_t extra = 1);

}  // namespace abl::models
