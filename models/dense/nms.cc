// SPDX-License-Identifier: Apache-2.0
#include "models/dense/nms.h"

#include <torch/utils.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "models/dense/every_machine.h"

namespace abl::models {
namespace {

using torch::Tensor;

constexpr std::int64_t kTogether = 16;      // boxes that are looked at in one go
constexpr std::int64_t kMovedApart = 1000;  // the most boxes whose classes are taken all at once

/// Boxes by score, coordinate by coordinate, filled up to whole groups with empty ones.
template <class T>
struct Sorted {
  explicit Sorted(const Tensor& boxes) : count{boxes.size(0)} {
    const auto places = static_cast<std::size_t>((count + kTogether - 1) / kTogether * kTogether);
    for (auto* values : {&x1, &y1, &x2, &y2, &area}) values->assign(places, 0);
    gone.assign(places, 0);
    const auto rows = boxes.accessor<T, 2>();
    for (std::int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      x1[at] = rows[i][0], y1[at] = rows[i][1], x2[at] = rows[i][2], y2[at] = rows[i][3];
      area[at] = (x2[at] - x1[at]) * (y2[at] - y1[at]);
    }
  }

  const std::int64_t count;
  std::vector<T> x1, y1, x2, y2, area;
  std::vector<std::int32_t> gone;
};

/// Marks what overlaps box `i` too much, among the boxes from its group on.
template <class T>
[[gnu::always_inline]] inline void mark(Sorted<T>& boxes, std::int64_t i, T threshold) {
  const T *x1 = boxes.x1.data(), *y1 = boxes.y1.data(), *x2 = boxes.x2.data(), *y2 = boxes.y2.data(),
          *area = boxes.area.data();
  std::int32_t* __restrict gone = boxes.gone.data();
  const T left = x1[i], top = y1[i], right = x2[i], bottom = y2[i], size = area[i];
  for (auto first = i / kTogether * kTogether; first < boxes.count; first += kTogether)
    for (std::int64_t j = first; j < first + kTogether; ++j) {
      const T w = (x2[j] < right ? x2[j] : right) - (left < x1[j] ? x1[j] : left);
      const T h = (y2[j] < bottom ? y2[j] : bottom) - (top < y1[j] ? y1[j] : top);
      const T shared = (w > 0 ? w : 0) * (h > 0 ? h : 0);
      gone[j] |= shared / (size + area[j] - shared) > threshold ? 1 : 0;
    }
}

ABL_FOR_EVERY_MACHINE_WITHOUT_FMA
void mark_overlapping(Sorted<float>& boxes, std::int64_t i, float threshold) { mark(boxes, i, threshold); }
ABL_FOR_EVERY_MACHINE_WITHOUT_FMA
void mark_overlapping(Sorted<double>& boxes, std::int64_t i, double threshold) { mark(boxes, i, threshold); }

/// The largest number of a type that is not above: what is above the one is above the other.
float rounded_down(double threshold, float) {
  const auto near = static_cast<float>(threshold);
  return near > threshold ? std::nextafter(near, -INFINITY) : near;
}
double rounded_down(double threshold, double) { return threshold; }

template <class T>
Tensor nms_of(const Tensor& boxes, const Tensor& scores, double threshold) {
  const auto order = std::get<1>(scores.sort(/*stable=*/true, /*dim=*/0, /*descending=*/true));
  Sorted<T> sorted{boxes.index_select(0, order)};
  const auto limit = rounded_down(threshold, T{});
  const auto* const places = order.const_data_ptr<std::int64_t>();
  std::vector<std::int64_t> kept;
  for (std::int64_t i = 0; i < sorted.count; ++i) {
    if (sorted.gone[static_cast<std::size_t>(i)]) continue;
    kept.push_back(places[i]);
    mark_overlapping(sorted, i, limit);
  }
  return torch::tensor(kept, torch::kLong);
}

Tensor by_class(const Tensor& boxes, const Tensor& scores, const Tensor& classes, double threshold) {
  const auto order = classes.argsort(/*stable=*/true);
  const auto of = classes.index_select(0, order).contiguous();
  const auto* const names = of.const_data_ptr<std::int64_t>();
  auto stays = torch::zeros({boxes.size(0)}, torch::kBool);
  for (std::int64_t first = 0, end = 0; first < of.size(0); first = end) {
    while (end < of.size(0) && names[end] == names[first]) ++end;
    const auto some = order.slice(0, first, end);
    stays.index_fill_(
        0, some.index_select(0, nms(boxes.index_select(0, some), scores.index_select(0, some), threshold)),
        true);
  }
  const auto kept = stays.nonzero().squeeze(1);
  return kept.index_select(0, std::get<1>(scores.index_select(0, kept).sort(/*dim=*/0, /*descending=*/true)));
}

void check(const Tensor& boxes, const Tensor& scores) {
  TORCH_CHECK_VALUE(
      boxes.dim() == 2 && boxes.size(1) == 4 && scores.dim() == 1 && scores.size(0) == boxes.size(0),
      "boxes ", boxes.sizes(), " and scores ", scores.sizes(), "; [N, 4] and [N] are expected");
}

/// As the loops want numbers.
Tensor on_processor(const Tensor& numbers) {
  const bool is_wide = numbers.scalar_type() == torch::kDouble;
  return numbers.detach().to(torch::kCPU, is_wide ? torch::kDouble : torch::kFloat);
}

}  // namespace

Tensor nms(const Tensor& boxes, const Tensor& scores, double threshold) {
  check(boxes, scores);
  const auto here = on_processor(boxes), ranks = on_processor(scores);
  const auto kept = here.scalar_type() == torch::kDouble ? nms_of<double>(here, ranks, threshold)
                                                         : nms_of<float>(here, ranks, threshold);
  return kept.to(boxes.device());
}

Tensor batched_nms(const Tensor& boxes, const Tensor& scores, const Tensor& classes, double threshold) {
  check(boxes, scores);
  TORCH_CHECK_VALUE(classes.sizes() == scores.sizes(), "classes ", classes.sizes(), " of ", boxes.size(0),
                    " boxes; one for each is expected");
  if (boxes.size(0) == 0) return torch::zeros({0}, classes.options().dtype(torch::kLong));
  const auto here = on_processor(boxes), ranks = on_processor(scores);
  const auto names = classes.to(torch::kCPU, torch::kLong);
  if (boxes.size(0) > kMovedApart) return by_class(here, ranks, names, threshold).to(boxes.device());
  const auto apart = names.to(here.scalar_type()) * (here.max() + 1);
  return nms(here + apart.unsqueeze(1), ranks, threshold).to(boxes.device());
}

}  // namespace abl::models
