// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace abl::storage {

/// A run's points are kept whole up to so many, about 160 MB of the results file: 800 epochs of 5,000 steps
/// with 20 metrics every 50th step are 1.6 million, one metric at each step is 4 million.
inline constexpr std::uint64_t kWholeRun = 4'000'000;
/// Up to so many, a metric is kept whole even in a run beyond that.
inline constexpr std::uint64_t kWholeMetric = 2'000;

/// Beyond both, a metric keeps one of this many points: 4, 16, 64 … and four times as many with every
/// doubling, so that curves reach their end, and a run never keeps more than 6 million points and 3,000 of
/// each of its metrics. 1: all are kept. `of_run`, `of_metric`: the points said so far, kept or not.
std::uint64_t point_stride(std::uint64_t of_run, std::uint64_t of_metric);

}  // namespace abl::storage
