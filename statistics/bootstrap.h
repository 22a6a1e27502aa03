// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "statistics/interval.h"

namespace abl::statistics {

/// How an interval is read off the means of resamples.
enum class Bootstrap {
  kPercentile,  ///< their quantiles α/2 and 1 − α/2
  kBca          ///< quantiles that correct for bias and for a spread that changes with the mean
};

struct BootstrapOptions {
  Bootstrap kind = Bootstrap::kBca;
  double level = kLevel;
  std::size_t resamples = 2000;  ///< one or more
  std::uint64_t seed = 0;        ///< the same seed gives the same bits, on every machine
};

/// Of a mean. A resample takes the value at ⌊n·u / 2³²⌋, n times, u the high half of SplitMix64. Quantiles
/// are interpolated (Hyndman and Fan's type 7). Too narrow for few seeds: of normal values, percentile
/// intervals of 95 % hold the mean in 76 % of cases for n = 3, 84 % for 5, 89 % for 10.
/// Nothing for fewer than two values, one that is not finite, values that are all equal, an interval of no
/// width, and where BCa's correction has no bound.
/// Source: Efron 1987; acceleration from the jackknife, as SciPy's `bootstrap`.
/// Throws: Error{kInvalidArgument} for a level that is not between 0 and 1, or no resamples.
std::optional<Interval> bootstrap_interval(const std::vector<double>& values,
                                           const BootstrapOptions& options = {});

/// Of mean(a) − mean(b), whose resamples are drawn apart: first all of `a`, then all of `b`. Nothing where
/// neither side has spread, else as above.
std::optional<Interval> bootstrap_interval_of_difference(const std::vector<double>& a,
                                                         const std::vector<double>& b,
                                                         const BootstrapOptions& options = {});

}  // namespace abl::statistics
