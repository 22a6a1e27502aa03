// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "storage/types.h"

namespace abl::storage {

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
