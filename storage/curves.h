// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "storage/types.h"

struct sqlite3;

namespace abl::storage {

/// A digest of all points of a run that grows with each of them, in whatever order they come: equal curves
/// have equal digests, others practically never. Metrics that tell of the machine (times, rates, memory) are
/// left out, since they differ between equal trainings, and what probes found. 0: no points.
class CurveDigest {
 public:
  explicit CurveDigest(std::uint64_t before = 0) : sum_{before} {}
  /// What is of the metric's name alone, for many points of it; nothing for one that is left out.
  static std::optional<std::uint64_t> of_metric(std::string_view metric);
  void add(std::uint64_t of_metric, std::int64_t step, double value);
  void add(std::string_view metric, std::int64_t step, double value) {
    if (const auto name = of_metric(metric)) add(*name, step, value);
  }
  std::uint64_t value() const { return sum_; }

 private:
  std::uint64_t sum_;
};

/// Gives SQL the aggregate curve_digest(metric name, step, value, kind), for stores from before there were
/// digests.
void add_curve_digest(sqlite3* db);

/// Finds rows of a table whose curves are equal at every seed that both have, one seed at least: a row whose
/// other seeds failed or still run is judged by those that are there. A row is looked up in a hash table for
/// each set of seeds that groups have, never compared with row after row.
class EqualCurves {
 public:
  /// A completed trial and the digest of its curves, all trials of a row one after the other. Those without
  /// points (0) are equal to nothing.
  void add(std::size_t row, std::int64_t seed, std::int64_t digest, TrialId trial);
  /// Rows of different trials, each in one group at most, by the first of each group. Rows of the same trials
  /// are equal because they are the same: that is worth no word.
  std::vector<std::vector<std::size_t>> groups() const;

 private:
  struct Curve {
    std::int64_t digest = 0;
    TrialId trial = 0;
  };
  using Curves = std::map<std::int64_t, Curve>;  // by seed
  struct Row {
    std::size_t row = 0;
    Curves curves;
  };
  struct Group;
  class Families;
  std::vector<Row> rows_;
};

}  // namespace abl::storage
