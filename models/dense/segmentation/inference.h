// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>

/// Logits of whole images, as mmsegmentation's EncoderDecoder infers them. For another size, that of an image
/// before it was resized, `resize_map` brings them there.
namespace abl::models {

/// A segmenter: images [B, 3, H, W] -> logits [B, classes, h, w], of a size of its own.
using Segment = std::function<torch::Tensor(const torch::Tensor& images)>;

struct WholeOptions {
  std::int64_t multiple =
      1;  ///< images are filled up with zeros, below and to the right, to a multiple of it
  bool align_corners = false;
};

/// Shape: images [B, 3, H, W] -> [B, classes, H, W].
torch::Tensor whole_logits(const Segment& segment, const torch::Tensor& images,
                           const WholeOptions& options = {});

struct SlidingOptions {
  std::int64_t rows = 512, columns = 512;              ///< of a window, pixels
  std::int64_t row_stride = 341, column_stride = 341;  ///< between windows; two thirds, as for ADE20K
  WholeOptions whole{};                                ///< of each window
};

/// Window by window, each at a stride after the last and the last at the edge of the image; where windows
/// overlap, the mean of their logits. An image smaller than the window is one.
/// Shape: images [B, 3, H, W] -> [B, classes, H, W].
/// Throws: c10::ValueError when windows do not overlap or touch.
torch::Tensor sliding_logits(const Segment& segment, const torch::Tensor& images,
                             const SlidingOptions& options = {});

}  // namespace abl::models
