// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>

namespace abl::models {

struct PixelLossOptions {
  std::int64_t ignored = 255;  ///< the label of pixels that say nothing
  /// Whether the mean is over all pixels, those that say nothing with a loss of 0, as mmsegmentation's
  /// default; otherwise over those that say something, and 0 where none does.
  bool counts_ignored = true;
  bool align_corners = false;
};

/// The mean cross entropy of logits that are enlarged to the size of the labels, bilinearly. On processors in
/// one pass over the pixels that keeps no logits of that size: of 150 classes they would be the largest
/// tensors of a step. On the meta device it holds as much. Computed in float32, or in float64 where the
/// logits are. Shape: logits [B, classes, h, w], labels [B, H, W], whole numbers -> scalar. Throws:
/// c10::ValueError for labels that are neither a class nor the ignored one, and for other shapes.
torch::Tensor pixel_loss(const torch::Tensor& logits, const torch::Tensor& labels,
                         const PixelLossOptions& options = {});

/// The same by ATen's operators, for any device.
torch::Tensor resized_pixel_loss(const torch::Tensor& logits, const torch::Tensor& labels,
                                 const PixelLossOptions& options = {});

}  // namespace abl::models
