// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "storage/stretch.h"
#include "storage/types.h"

namespace abl::storage {

/// A range of steps, both ends included.
struct StepRange {
  std::uint32_t from = 0, to = 0xffff'ffff;
};

/// A metric of a run as a chart of some width shows it.
struct BucketedSeries {
  /// A bucket covers `bucket_steps` steps, a power of two; bucket k begins at step k * bucket_steps. So
  /// ranges and runs share their buckets, and appended points change only the last one.
  struct Bucket {
    std::uint32_t middle = 0;  ///< step half way between its first point and its last
    std::uint32_t points = 0, not_finite = 0;
    double mean = 0;  ///< of those that are finite; NaN where none is
  };
  Series series;
  std::uint32_t points = 0;      ///< stored in the range
  std::uint32_t not_finite = 0;  ///< of these
  /// 0: `series` has every point of the range. Otherwise those that a line through all of them would show:
  /// of each bucket the first, the lowest, the highest, the last, and the first that is not finite.
  std::uint32_t bucket_steps = 0;
  std::vector<Bucket> buckets;  ///< where there are any, by ascending step
};

/// Puts points into buckets as they come, by ascending step. Holds no more than it returns.
class Bucketer {
 public:
  static constexpr std::size_t kMostOfBucket = Stretch::kMostKept;  ///< points kept per bucket

  /// Steps of the narrowest buckets of which a range has no more than `width`.
  static std::uint32_t steps_for(StepRange range, std::uint32_t width);
  /// A series of at most `exact_up_to` points stays whole.
  Bucketer(std::uint32_t bucket_steps, std::size_t exact_up_to);
  void add(const CurvePoint& point);
  /// Points within one bucket. A curve that has got such a part is one in buckets, however few its points.
  void add(const Stretch& stretch);
  BucketedSeries take();  ///< after the last point

 private:
  void turn_to(std::uint32_t step);
  void end();

  const std::uint32_t bucket_steps_;
  const std::size_t exact_up_to_;
  BucketedSeries kept_;
  Series whole_;  // as long as it is no longer than may stay whole
  bool in_parts_ = false;
  std::uint32_t bucket_ = 0;
  Stretch in_bucket_;
};

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
