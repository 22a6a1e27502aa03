// SPDX-License-Identifier: Apache-2.0
#include "models/dense/boxes.h"

#include <torch/utils.h>

namespace abl::models {
namespace {

using torch::Tensor;

/// Centres and sides, [N] each.
struct Middles {
  Tensor x, y, w, h;

  explicit Middles(const Tensor& boxes)
      : w{boxes.select(1, 2) - boxes.select(1, 0)}, h{boxes.select(1, 3) - boxes.select(1, 1)} {
    x = boxes.select(1, 0) + 0.5 * w;
    y = boxes.select(1, 1) + 0.5 * h;
  }
};

/// How far the boxes overlap along one axis, from `low` to `low + 2`: [N, M].
Tensor overlaps(const Tensor& a, const Tensor& b, std::int64_t low) {
  const auto ends = torch::min(a.select(1, low + 2).unsqueeze(1), b.select(1, low + 2));
  return ends.sub_(torch::max(a.select(1, low).unsqueeze(1), b.select(1, low))).clamp_min_(0);
}

}  // namespace

Tensor box_areas(const Tensor& boxes) {
  return (boxes.select(1, 2) - boxes.select(1, 0)) * (boxes.select(1, 3) - boxes.select(1, 1));
}

Tensor box_iou(const Tensor& a, const Tensor& b) {
  auto shared = overlaps(a, b, 0).mul_(overlaps(a, b, 1));
  const auto all = (box_areas(a).unsqueeze(1) + box_areas(b)).sub_(shared);
  return shared.div_(all);
}

Tensor clipped_boxes(const Tensor& boxes, const ImageSize& size) {
  const auto limits = torch::tensor({size.width, size.height, size.width, size.height}).to(boxes.options());
  return torch::min(boxes.clamp_min(0), limits);
}

Tensor are_large(const Tensor& boxes, double side) {
  return (boxes.select(1, 2) - boxes.select(1, 0) >= side)
      .logical_and_(boxes.select(1, 3) - boxes.select(1, 1) >= side);
}

Tensor scaled_boxes(const Tensor& boxes, const ImageSize& from, const ImageSize& to) {
  const auto ratio = [](std::int64_t a, std::int64_t b) {
    return static_cast<double>(static_cast<float>(a) / static_cast<float>(b));
  };
  const double x = ratio(to.width, from.width), y = ratio(to.height, from.height);
  return boxes * torch::tensor({x, y, x, y}).to(boxes.options());
}

Tensor BoxCoder::encode(const Tensor& boxes, const Tensor& anchors) const {
  const Middles to{boxes}, from{anchors};
  return torch::stack({weights[0] * (to.x - from.x) / from.w, weights[1] * (to.y - from.y) / from.h,
                       weights[2] * torch::log(to.w / from.w), weights[3] * torch::log(to.h / from.h)},
                      1);
}

Tensor BoxCoder::decode(const Tensor& differences, const Tensor& anchors) const {
  const auto N = anchors.size(0), K = differences.size(1) / 4;
  const auto each = differences.reshape({N, K, 4});
  const auto part = [&](std::int64_t i) { return each.select(2, i) / weights.at(i); };  // [N, K]
  const Middles from{anchors};
  const auto x = part(0) * from.w.unsqueeze(1) + from.x.unsqueeze(1);
  const auto y = part(1) * from.h.unsqueeze(1) + from.y.unsqueeze(1);
  const auto half_w = 0.5 * (torch::exp(part(2).clamp_max_(largest_log)) * from.w.unsqueeze(1));
  const auto half_h = 0.5 * (torch::exp(part(3).clamp_max_(largest_log)) * from.h.unsqueeze(1));
  return torch::stack({x - half_w, y - half_h, x + half_w, y + half_h}, 2);
}

}  // namespace abl::models
