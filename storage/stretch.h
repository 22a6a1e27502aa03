// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace abl::storage {

struct CurvePoint {
  std::uint32_t step = 0;
  double value = 0;
  std::int64_t time_ms = 0;
};

/// What is drawn of a stretch of a curve, however many points it has: of those that are finite the lowest and
/// the highest, the first and the last of all, and the first that is not finite. Of equals the earliest.
class Stretch {
 public:
  static constexpr std::size_t kMostKept = 5;

  /// The points that are kept, by ascending step, none twice.
  struct Kept {
    std::array<CurvePoint, kMostKept> points;
    std::size_t count = 0;
    std::size_t size() const { return count; }
    const CurvePoint* begin() const { return points.data(); }
    const CurvePoint* end() const { return points.data() + count; }
  };
  /// Of what `kept` answered, and what was counted.
  Stretch(std::span<const CurvePoint> kept, std::uint32_t points, std::uint32_t not_finite, double sum);
  Stretch() = default;

  /// Points and stretches come by ascending step.
  void add(const CurvePoint& point);
  void add(const Stretch& next);

  bool empty() const { return points_ == 0; }
  std::uint32_t points() const { return points_; }
  std::uint32_t not_finite() const { return not_finite_; }
  double sum() const { return sum_; }  ///< of those that are finite
  double mean() const;                 ///< of the same; NaN where none is
  const CurvePoint& first() const { return first_; }
  const CurvePoint& last() const { return last_; }
  std::optional<CurvePoint> lowest() const { return finite() > 0 ? std::optional{lowest_} : std::nullopt; }
  /// The first that is not finite counts as higher than everything, so that it is seen.
  CurvePoint highest() const { return first_not_finite_ ? *first_not_finite_ : highest_; }
  Kept kept() const;

 private:
  std::uint32_t finite() const { return points_ - not_finite_; }
  void keep(const CurvePoint& point);  ///< without counting it

  std::uint32_t points_ = 0, not_finite_ = 0;
  double sum_ = 0;
  bool any_ = false, any_finite_ = false;
  CurvePoint first_, last_, lowest_, highest_;
  std::optional<CurvePoint> first_not_finite_;
};

}  // namespace abl::storage
