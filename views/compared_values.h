// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/compare.pb.h"
#include "protocol/metrics.h"
#include "storage/database.h"
#include "storage/types.h"
#include "views/compared_side.h"

namespace abl::views {

/// What one run says of a metric.
struct ComparedValue {
  std::int64_t seed = 0;
  storage::TrialId trial = 0;
  storage::RunId run = 0;
  double last = 0, min = 0, max = 0, mean = 0;
  std::uint32_t count = 0, finite = 0;
  std::uint32_t last_step = 0;

  double taken(protocol::Take take, protocol::Better better) const;
};

std::optional<std::int64_t> metric_id(storage::Database& db, const std::string& name);

/// The metrics that the completed runs of a row, or one run, reported.
std::set<std::string> metrics_of(storage::Database& db, const ComparedSide& side);

/// What these runs say of a metric, by seed. `row`: of a sweep's side, which of its rows.
std::vector<ComparedValue> values_of(storage::Database& db, const ComparedSide& side, int row,
                                     std::int64_t metric);

/// The values of one side as a column takes them, or why there are none.
ablate::v1::Cell cell_of(const std::vector<ComparedValue>& values, const storage::Column& column,
                         const ComparedSide& side, std::uint32_t trials, std::uint32_t completed);

/// Last values of A and of B that were measured at different steps: their difference is partly due to that.
class UnequalSteps {
 public:
  /// `what`: the metric, or of two sweeps the metric and the row.
  void add(const std::string& what, const storage::Column& column, const std::vector<ComparedValue>& a,
           const std::vector<ComparedValue>& b);
  /// One for each pair of steps, the first few.
  void add_notes(ablate::v1::CompareResponse& message) const;

 private:
  /// The lowest and the highest step of one side's last values.
  struct LastSteps {
    std::uint32_t first = 0, last = 0;
    std::string text() const;
    auto operator<=>(const LastSteps&) const = default;
  };
  static LastSteps steps_of(const std::vector<ComparedValue>& values);

  std::map<std::pair<LastSteps, LastSteps>, std::vector<std::string>> by_steps_;
};

}  // namespace abl::views
