// SPDX-License-Identifier: Apache-2.0
#include "storage/stretch.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace abl::storage {

Stretch::Stretch(std::span<const CurvePoint> kept, std::uint32_t points, std::uint32_t not_finite, double sum)
    : points_{points}, not_finite_{not_finite}, sum_{sum} {
  for (const CurvePoint& point : kept) keep(point);
}

void Stretch::add(const CurvePoint& point) {
  ++points_;
  if (std::isfinite(point.value))
    sum_ += point.value;
  else
    ++not_finite_;
  keep(point);
}

void Stretch::add(const Stretch& next) {
  points_ += next.points_;
  not_finite_ += next.not_finite_;
  sum_ += next.sum_;
  for (const CurvePoint& point : next.kept()) keep(point);
}

void Stretch::keep(const CurvePoint& point) {
  if (!any_) first_ = point;
  any_ = true;
  last_ = point;
  if (!std::isfinite(point.value)) {
    if (!first_not_finite_) first_not_finite_ = point;
    return;
  }
  if (!any_finite_ || point.value < lowest_.value) lowest_ = point;
  if (!any_finite_ || point.value > highest_.value) highest_ = point;
  any_finite_ = true;
}

double Stretch::mean() const {
  return finite() > 0 ? sum_ / finite() : std::numeric_limits<double>::quiet_NaN();
}

Stretch::Kept Stretch::kept() const {
  Kept kept;
  if (!any_) return kept;
  const auto add = [&kept](const CurvePoint& point) {  // in the order of steps, each once
    const auto begin = kept.points.begin(), end = begin + static_cast<std::ptrdiff_t>(kept.count);
    const auto place = std::lower_bound(
        begin, end, point, [](const CurvePoint& x, const CurvePoint& y) { return x.step < y.step; });
    if (place != end && place->step == point.step) return;
    std::move_backward(place, end, end + 1);
    *place = point;
    ++kept.count;
  };
  add(first_), add(last_);
  if (any_finite_) add(lowest_), add(highest_);
  if (first_not_finite_) add(*first_not_finite_);
  return kept;
}

}  // namespace abl::storage
