// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

namespace abl::models {

/// Cuts images into square patches, row by row; within a patch the order is row, column, channel.
/// Shape: [B, C, H, W] -> [B, H/p · W/p, p·p·C].
torch::Tensor patchify(const torch::Tensor& images, std::int64_t patch);

/// Refuses square images of a size that patches of this one do not fill.
/// Throws: c10::ValueError.
void check_patches(std::int64_t image_size, std::int64_t patch);

/// Refuses images of another size than the square one that a model is made for.
/// Throws: c10::ValueError.
void check_size(const torch::Tensor& images, std::int64_t image_size);

}  // namespace abl::models
