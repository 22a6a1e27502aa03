// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

struct sqlite3;

namespace abl::storage {

/// A digest of all points of a run that grows with each of them, in whatever order they come: equal curves
/// have equal digests, others practically never. Metrics that tell of the machine (times, rates, memory) are
/// left out, since they differ between equal trainings. 0: no points.
class CurveDigest {
 public:
  explicit CurveDigest(std::uint64_t before = 0) : sum_{before} {}
  void add(std::string_view metric, std::int64_t step, double value);
  std::uint64_t value() const { return sum_; }

 private:
  std::uint64_t sum_;
};

/// Gives SQL the aggregate curve_digest(metric name, step, value, kind), for stores from before there were
/// digests.
void add_curve_digest(sqlite3* db);

}  // namespace abl::storage
