// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "storage/types.h"

namespace abl::storage {

/// At most `max_points` points for drawing: the first, the last, and the lowest and highest of each stretch
/// between, so that no peak is lost. A NaN counts as higher than everything: it stays visible.
Series thinned(const Series& series, std::uint32_t max_points);

/// The same, one point after the other, keeping no more than what stays.
class Thinner {
 public:
  /// Of a series that has `size` points; `max_points` 0: all stay.
  Thinner(std::size_t size, std::uint32_t max_points);
  void add(std::uint32_t step, double value, std::int64_t time_ms);
  Series take();  ///< after the last point

 private:
  struct Point {
    std::size_t at = 0;
    std::uint32_t step = 0;
    double value = 0;
    std::int64_t time_ms = 0;
  };
  void keep(const Point& point);
  void end_stretch();

  const std::size_t size_, max_points_, stretches_;
  std::size_t seen_ = 0, stretch_ = 0;
  Point lowest_, highest_;  // of the stretch
  bool in_stretch_ = false;
  Series kept_;
};

}  // namespace abl::storage
