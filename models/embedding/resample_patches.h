// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

namespace abl::models {

/// The kernel of a patch embedding for patches of another size, such that a patch that is enlarged with the
/// image has the embedding that it had: for the matrix R that resizes patches, the least squares solution of
/// Rᵀ w' = w.
/// Shape: weight [dim, channels, old, old] -> [dim, channels, patch, patch].
/// Source: FlexiViT, arXiv:2212.08013, section 3.4.
torch::Tensor resample_patches(const torch::Tensor& weight, std::int64_t patch);

}  // namespace abl::models
