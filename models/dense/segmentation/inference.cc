// SPDX-License-Identifier: Apache-2.0
#include "models/dense/segmentation/inference.h"

#include <torch/utils.h>

#include <algorithm>
#include <vector>

#include "models/dense/segmentation/heads.h"

namespace abl::models {
namespace {

struct Span {
  std::int64_t from = 0, length = 0;
};

/// Where windows lie along one axis.
std::vector<Span> spans(std::int64_t size, std::int64_t window, std::int64_t stride) {
  TORCH_CHECK_VALUE(window > 0 && stride > 0 && stride <= window, "windows of ", window,
                    " pixels at a stride of ", stride, "; a stride from 1 to the window's size is expected");
  const auto length = std::min(window, size);
  std::vector<Span> found;
  for (std::int64_t from = 0;; from += stride) {
    found.push_back({.from = std::min(from, size - length), .length = length});
    if (from + length >= size) return found;
  }
}

std::int64_t filled(std::int64_t size, std::int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

}  // namespace

torch::Tensor whole_logits(const Segment& segment, const torch::Tensor& images, const WholeOptions& options) {
  TORCH_CHECK_VALUE(options.multiple > 0, "images filled up to a multiple of ", options.multiple,
                    "; at least 1 is expected");
  const auto H = images.size(2), W = images.size(3);
  const auto rows = filled(H, options.multiple), columns = filled(W, options.multiple);
  const bool fits = rows == H && columns == W;
  const auto logits = segment(fits ? images : torch::constant_pad_nd(images, {0, columns - W, 0, rows - H}));
  return resize_map(logits, rows, columns, options.align_corners).narrow(2, 0, H).narrow(3, 0, W);
}

torch::Tensor sliding_logits(const Segment& segment, const torch::Tensor& images,
                             const SlidingOptions& options) {
  torch::Tensor sum, windows;
  for (const auto& row : spans(images.size(2), options.rows, options.row_stride))
    for (const auto& column : spans(images.size(3), options.columns, options.column_stride)) {
      const auto cut = [&](const torch::Tensor& x) {
        return x.narrow(2, row.from, row.length).narrow(3, column.from, column.length);
      };
      const auto logits = whole_logits(segment, cut(images), options.whole);
      if (!sum.defined()) {
        const auto exact =
            logits.options().dtype(logits.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat);
        sum = torch::zeros({images.size(0), logits.size(1), images.size(2), images.size(3)}, exact);
        windows = torch::zeros({1, 1, images.size(2), images.size(3)}, exact);
      }
      cut(sum).add_(logits);
      cut(windows).add_(1);
    }
  return sum.div_(windows);
}

}  // namespace abl::models
