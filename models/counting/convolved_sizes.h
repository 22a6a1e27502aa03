// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace abl::models {

/// Of a setting for each axis; one number may stand for all.
inline std::int64_t along(torch::IntArrayRef values, std::size_t axis) {
  return values[std::min(axis, values.size() - 1)];
}

/// What a convolution leaves of each axis of an image. Of stride, padding and dilation one number may stand
/// for all axes, as in PyTorch's calls.
/// Shape: x [B, in, H, W], weight [out, in/groups, kernel, kernel] -> H', W'.
inline std::vector<std::int64_t> convolved_sizes(const torch::Tensor& x, const torch::Tensor& weight,
                                                 torch::IntArrayRef stride, torch::IntArrayRef padding,
                                                 torch::IntArrayRef dilation) {
  std::vector<std::int64_t> sizes;
  for (std::size_t axis = 0; axis + 2 < x.sizes().size(); ++axis) {
    const auto covered = along(dilation, axis) * (weight.sizes()[axis + 2] - 1) + 1;
    const auto room = x.sizes()[axis + 2] + 2 * along(padding, axis) - covered;
    sizes.push_back(room / along(stride, axis) + 1);
  }
  return sizes;
}

/// What a transposed convolution makes of each axis.
/// Shape: x [B, in, H, W], weight [in, out/groups, kernel, kernel] -> H', W'.
inline std::vector<std::int64_t> enlarged_sizes(const torch::Tensor& x, const torch::Tensor& weight,
                                                torch::IntArrayRef stride, torch::IntArrayRef padding,
                                                torch::IntArrayRef dilation,
                                                torch::IntArrayRef output_padding) {
  std::vector<std::int64_t> sizes;
  for (std::size_t axis = 0; axis + 2 < x.sizes().size(); ++axis)
    sizes.push_back((x.sizes()[axis + 2] - 1) * along(stride, axis) - 2 * along(padding, axis) +
                    along(dilation, axis) * (weight.sizes()[axis + 2] - 1) + along(output_padding, axis) + 1);
  return sizes;
}

}  // namespace abl::models
