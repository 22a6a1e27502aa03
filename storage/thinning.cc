// SPDX-License-Identifier: Apache-2.0
#include "storage/thinning.h"

#include <cmath>
#include <utility>

namespace abl::storage {

Series thinned(const Series& series, std::uint32_t max_points) {
  Thinner thinner{series.steps.size(), max_points};
  for (std::size_t i = 0; i < series.steps.size(); ++i)
    thinner.add(series.steps[i], series.values[i], series.times_ms[i]);
  Series result = thinner.take();
  result.name = series.name;
  return result;
}

Thinner::Thinner(std::size_t size, std::uint32_t max_points)
    : size_{size},
      max_points_{max_points == 0 ? size : max_points},
      stretches_{max_points_ > 3 ? (max_points_ - 2) / 2 : 0} {}

void Thinner::add(std::uint32_t step, double value, std::int64_t time_ms) {
  const Point point{seen_++, step, value, time_ms};
  if (size_ <= max_points_) return keep(point);
  if (point.at == 0) {
    if (max_points_ > 1) keep(point);
    return;
  }
  if (point.at >= size_ - 1) {
    end_stretch();
    return keep(point);
  }
  if (stretches_ == 0) return;
  const std::size_t inner = size_ - 2, end = 1 + (stretch_ + 1) * inner / stretches_;
  if (point.at >= end) end_stretch(), ++stretch_;
  const auto below = [](double x, double y) { return std::isnan(y) ? !std::isnan(x) : x < y; };
  if (!in_stretch_ || below(point.value, lowest_.value)) lowest_ = point;
  if (!in_stretch_ || below(highest_.value, point.value)) highest_ = point;
  in_stretch_ = true;
}

Series Thinner::take() {
  end_stretch();
  return std::move(kept_);
}

void Thinner::keep(const Point& point) {
  kept_.steps.push_back(point.step);
  kept_.values.push_back(point.value);
  kept_.times_ms.push_back(point.time_ms);
}

void Thinner::end_stretch() {
  if (!std::exchange(in_stretch_, false)) return;
  keep(lowest_.at < highest_.at ? lowest_ : highest_);
  if (lowest_.at != highest_.at) keep(lowest_.at < highest_.at ? highest_ : lowest_);
}

}  // namespace abl::storage
