// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "storage/buckets.h"

namespace abl::storage {

/// At most `max_points` points of a series that has more, for drawing: the first, the last, and the lowest
/// and highest of each bucket of steps, so that no peak is lost. What is not finite counts as higher than
/// everything: it stays visible. Holds no more than it returns.
class Thinner {
 public:
  /// `range`: of the steps of the series.
  Thinner(StepRange range, std::uint32_t max_points);
  /// A stretch that is added must lie in one bucket of so many steps.
  std::uint32_t bucket_steps() const { return bucket_steps_; }
  void add(const CurvePoint& point) { part_at(point.step).add(point); }
  void add(const Stretch& stretch) {
    if (!stretch.empty()) part_at(stretch.first().step).add(stretch);
  }
  Series take();  ///< after the last point

 private:
  Stretch& part_at(std::uint32_t step);
  void end_bucket();
  void keep(const CurvePoint& point);

  const std::uint32_t max_points_, bucket_steps_;
  std::uint32_t bucket_ = 0;
  Stretch in_bucket_;
  std::optional<CurvePoint> last_;
  Series kept_;
};

}  // namespace abl::storage
