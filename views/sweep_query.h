// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/types.h"

namespace abl::views {

/// What people type to find sweeps: `state:failed owner:vera name:msf* rows>20 acc>75`. All terms must match;
/// "-" before a term negates it.
///
///   word          the name contains it; with * or ?, the whole name matches
///   key:value     the same for `name` and `owner`; a whole tag for `tag`; for `state` one of its words, for
///                 `is` pinned or archived
///   key>number    also < >= <= : and !=; a count, or a column, of which the mean of some row matches. Ages
///                 have a unit: age<7d
///
/// Values with spaces need double quotes. Letter case is ignored.
class SweepQuery {
 public:
  enum class Op { kIs, kIsNot, kLess, kAtMost, kMore, kAtLeast };
  /// A test of a table's column, for which a sweep's record is not enough.
  struct ColumnTest {
    std::string column;
    Op op = Op::kIs;
    double value = 0;
    bool negated = false;
  };

  /// `columns` returns the names of all columns; called only for a key that is not one of the sweep's.
  /// Throws: Error{kInvalidArgument} with the place in the text, and the nearest key.
  SweepQuery(std::string_view text, const std::function<std::vector<std::string>()>& columns);

  /// Whether it says anything of what is archived; otherwise that is not looked for.
  bool asks_for_archived() const { return asks_for_archived_; }
  /// All tests but those of `columns`.
  bool matches(const storage::SweepRecord& sweep, Time now) const;
  const std::vector<ColumnTest>& columns() const { return columns_; }

 private:
  std::vector<std::function<bool(const storage::SweepRecord&, Time)>> tests_;
  std::vector<ColumnTest> columns_;
  bool asks_for_archived_ = false;
};

bool holds(SweepQuery::Op op, double value, double wanted);

/// An order of sweeps by a key: "rows", or "-rows" for descending; newest first among equals. The empty text:
/// pinned ones first, then the newest.
/// Throws: Error{kInvalidArgument} with the nearest key.
std::function<bool(const storage::SweepRecord&, const storage::SweepRecord&)> sweep_order(
    std::string_view text, Time now);

}  // namespace abl::views
