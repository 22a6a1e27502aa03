// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

namespace abl::models {

/// Swin's learned biases for another window: bicubic over the map of relative positions, as the release
/// resizes them.
/// Shape: table [(2·old - 1)², heads] -> [(2·window - 1)², heads].
/// Throws: c10::ValueError when the table is of no square map.
torch::Tensor interpolate_bias_table(const torch::Tensor& table, std::int64_t window);

/// The kernel of a patch embedding for patches of another size, such that a patch that is enlarged with the
/// image has the embedding that it had: for the matrix R that resizes patches, the least squares solution of
/// Rᵀ w' = w.
/// Shape: weight [dim, channels, old, old] -> [dim, channels, patch, patch].
/// Source: FlexiViT, arXiv:2212.08013, section 3.4.
torch::Tensor resample_patches(const torch::Tensor& weight, std::int64_t patch);

}  // namespace abl::models
