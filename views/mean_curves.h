// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ablate/v1/compare.pb.h"
#include "protocol/metrics.h"
#include "storage/database.h"
#include "storage/types.h"

namespace abl::views {

/// The mean of some runs and that of others, at the same steps: at each that one of them was measured at,
/// between the first and the last that all of them have; runs that were measured at others are interpolated
/// between their own, linearly.
struct MeanCurves {
  std::vector<std::uint32_t> steps;  ///< ascending
  std::vector<double> a, b;          ///< one for each step
  bool thinned = false;              ///< there are more steps than are here
};

/// Steps that such curves have at most.
inline constexpr std::size_t kMostStepsOfCurves = 4096;

/// Points that are not finite are left out: a run that diverged ends with its last finite one. Nothing where
/// a run has no finite point, or no step is in all of them.
std::optional<MeanCurves> mean_curves(const std::vector<storage::Series>& a,
                                      const std::vector<storage::Series>& b);

/// What is said of them: their ends, their best, where they cross. `max_points` of the curves themselves.
ablate::v1::ComparedCurves curves_message(const MeanCurves& curves, protocol::Better better,
                                          std::uint32_t max_points);

/// Adds the curves of a metric's runs to it, from so many points at most: where there are more, from the
/// means over stretches of steps, which is said (`thinned`). Returns: how many were looked at.
std::uint64_t add_curves(storage::Database& db, ablate::v1::ComparedMetric& metric, std::uint32_t max_points,
                         std::uint64_t most_read);

}  // namespace abl::views
