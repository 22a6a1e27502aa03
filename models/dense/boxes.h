// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <array>
#include <cmath>
#include <cstdint>

/// Boxes are rows x1, y1, x2, y2, in pixels: [N, 4]. All here computes as torchvision does, in its order of
/// operations, so that what is compared with a threshold falls on the same side.
namespace abl::models {

struct ImageSize {
  std::int64_t height = 0, width = 0;  ///< pixels
};

/// In float32 at least: boxes, scores and losses are no matter of autocast.
inline torch::Tensor wide(const torch::Tensor& x) {
  return x.to(torch::promote_types(x.scalar_type(), torch::kFloat));
}

/// Shape: [N, 4] -> [N]. Negative where one side is.
torch::Tensor box_areas(const torch::Tensor& boxes);

/// Intersection over union of every pair; NaN where both boxes are empty.
/// Shape: [N, 4], [M, 4] -> [N, M].
torch::Tensor box_iou(const torch::Tensor& a, const torch::Tensor& b);

/// What of the boxes lies in an image.
/// Shape: [..., 4] -> [..., 4].
torch::Tensor clipped_boxes(const torch::Tensor& boxes, const ImageSize& size);

/// Which boxes have no side below `side`.
/// Shape: [N, 4] -> [N], of bool.
torch::Tensor are_large(const torch::Tensor& boxes, double side);

/// The boxes of an image that was resized.
torch::Tensor scaled_boxes(const torch::Tensor& boxes, const ImageSize& from, const ImageSize& to);

/// A box as its difference from another, the anchor, whose centre is (x, y) and whose sides are w and h:
///   wx (x' - x) / w, wy (y' - y) / h, ww log(w' / w), wh log(h' / h)
/// Source: "Rich feature hierarchies for accurate object detection and semantic segmentation", appendix C.
struct BoxCoder {
  std::array<double, 4> weights = {1, 1, 1, 1};
  double largest_log = std::log(1000. / 16);  ///< of a side's growth: what is larger is taken for this

  /// Shape: boxes, anchors [N, 4] -> [N, 4].
  torch::Tensor encode(const torch::Tensor& boxes, const torch::Tensor& anchors) const;
  /// Shape: differences [N, 4·K], anchors [N, 4] -> [N, K, 4].
  torch::Tensor decode(const torch::Tensor& differences, const torch::Tensor& anchors) const;
};

}  // namespace abl::models
