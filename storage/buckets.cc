// SPDX-License-Identifier: Apache-2.0
#include "storage/buckets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

namespace abl::storage {

std::uint32_t Bucketer::steps_for(StepRange range, std::uint32_t width) {
  std::uint32_t steps = 1;
  while (range.to / steps - range.from / steps >= std::max(1U, width) && steps < 1U << 31) steps *= 2;
  return steps;
}

Bucketer::Bucketer(std::uint32_t bucket_steps, std::size_t exact_up_to)
    : bucket_steps_{bucket_steps}, exact_up_to_{exact_up_to} {}

void Bucketer::add(std::uint32_t step, double value, std::int64_t time_ms) {
  const Point point{step, value, time_ms};
  if (kept_.points++ < exact_up_to_) keep(whole_, point);
  if (in_bucket_ == 0 || step / bucket_steps_ != bucket_) begin(point);
  ++in_bucket_;
  last_ = point;
  if (!std::isfinite(value)) {
    ++kept_.not_finite;
    if (!not_finite_) not_finite_ = point;
    return;
  }
  sum_ += value;
  if (finite_ == 0 || value < lowest_.value) lowest_ = point;
  if (finite_ == 0 || value > highest_.value) highest_ = point;
  ++finite_;
}

BucketedSeries Bucketer::take() {
  end();
  if (kept_.points <= exact_up_to_) {
    kept_.series = std::move(whole_);
    kept_.buckets.clear();
  } else {
    kept_.bucket_steps = bucket_steps_;
  }
  return std::move(kept_);
}

void Bucketer::begin(const Point& point) {
  end();
  bucket_ = point.step / bucket_steps_;
  first_ = point;
}

void Bucketer::end() {
  if (in_bucket_ == 0) return;
  std::array<Point, kMostOfBucket> points{first_, last_};
  std::size_t count = 2;
  if (finite_ > 0) points[count++] = lowest_, points[count++] = highest_;
  if (not_finite_) points[count++] = *not_finite_;
  const auto its_end = points.begin() + static_cast<std::ptrdiff_t>(count);
  std::sort(points.begin(), its_end, [](const Point& x, const Point& y) { return x.step < y.step; });
  for (auto point = points.begin(); point != its_end; ++point)
    if (point == points.begin() || point->step != std::prev(point)->step) keep(kept_.series, *point);
  kept_.buckets.push_back({.middle = first_.step + (last_.step - first_.step) / 2,
                           .points = in_bucket_,
                           .not_finite = in_bucket_ - finite_,
                           .mean = finite_ > 0 ? sum_ / finite_ : std::numeric_limits<double>::quiet_NaN()});
  in_bucket_ = finite_ = 0;
  sum_ = 0;
  not_finite_.reset();
}

void Bucketer::keep(Series& series, const Point& point) {
  series.steps.push_back(point.step);
  series.values.push_back(point.value);
  series.times_ms.push_back(point.time_ms);
}

}  // namespace abl::storage
