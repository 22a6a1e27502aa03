// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "storage/buckets.h"

namespace abl::storage {

Thinner::Thinner(StepRange range, std::uint32_t max_points)
    : max_points_{max_points},
      // two of each bucket, beside the first and the last of all
      bucket_steps_{Bucketer::steps_for(range, max_points > 3 ? (max_points - 2) / 2 : 1)} {}

Series Thinner::take() {
  end_bucket();
  if (last_) keep(*last_);
  return std::move(kept_);
}

Stretch& Thinner::part_at(std::uint32_t step) {
  if (step / bucket_steps_ != bucket_) end_bucket();
  bucket_ = step / bucket_steps_;
  return in_bucket_;
}

void Thinner::end_bucket() {
  if (in_bucket_.empty()) return;
  if (!last_ && max_points_ > 1) keep(in_bucket_.first());
  if (max_points_ > 3) {
    CurvePoint one = in_bucket_.lowest().value_or(in_bucket_.highest()), other = in_bucket_.highest();
    if (one.step > other.step) std::swap(one, other);
    keep(one), keep(other);
  }
  last_ = in_bucket_.last();
  in_bucket_ = {};
}

/// Points come by ascending step; one that is the first, an extreme or the last at once is kept once.
void Thinner::keep(const CurvePoint& point) {
  if (!kept_.steps.empty() && kept_.steps.back() == point.step) return;
  kept_.steps.push_back(point.step);
  kept_.values.push_back(point.value);
  kept_.times_ms.push_back(point.time_ms);
}

}  // namespace abl::storage
