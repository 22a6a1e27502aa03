// SPDX-License-Identifier: Apache-2.0
#include "storage/buckets.h"

#include <algorithm>
#include <utility>

namespace abl::storage {
namespace {

void keep(Series& series, const CurvePoint& point) {
  series.steps.push_back(point.step);
  series.values.push_back(point.value);
  series.times_ms.push_back(point.time_ms);
}

}  // namespace

std::uint32_t Bucketer::steps_for(StepRange range, std::uint32_t width) {
  std::uint32_t steps = 1;
  while (range.to / steps - range.from / steps >= std::max(1U, width) && steps < 1U << 31) steps *= 2;
  return steps;
}

Bucketer::Bucketer(std::uint32_t bucket_steps, std::size_t exact_up_to)
    : bucket_steps_{bucket_steps}, exact_up_to_{exact_up_to} {}

void Bucketer::add(const CurvePoint& point) {
  if (kept_.points++ < exact_up_to_) keep(whole_, point);
  turn_to(point.step);
  in_bucket_.add(point);
}

void Bucketer::add(const Stretch& stretch) {
  if (stretch.empty()) return;
  in_parts_ = true;
  kept_.points += stretch.points();
  turn_to(stretch.first().step);
  in_bucket_.add(stretch);
}

BucketedSeries Bucketer::take() {
  end();
  if (!in_parts_ && kept_.points <= exact_up_to_) {
    kept_.series = std::move(whole_);
    kept_.buckets.clear();
  } else {
    kept_.bucket_steps = bucket_steps_;
  }
  return std::move(kept_);
}

void Bucketer::turn_to(std::uint32_t step) {
  if (step / bucket_steps_ != bucket_) end();
  bucket_ = step / bucket_steps_;
}

void Bucketer::end() {
  if (in_bucket_.empty()) return;
  for (const CurvePoint& point : in_bucket_.kept()) keep(kept_.series, point);
  const std::uint32_t first = in_bucket_.first().step, last = in_bucket_.last().step;
  kept_.buckets.push_back({.middle = first + (last - first) / 2,
                           .points = in_bucket_.points(),
                           .not_finite = in_bucket_.not_finite(),
                           .mean = in_bucket_.mean()});
  kept_.not_finite += in_bucket_.not_finite();
  in_bucket_ = {};
}

}  // namespace abl::storage
