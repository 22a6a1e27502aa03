// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "storage/database.h"

namespace abl::storage {

/// What a pivot is made from of a row of a table: its names, the heading that it stands under, and what it
/// sets: dotted keys and their values as text.
struct PivotRow {
  std::string id, label, group;
  std::vector<std::pair<std::string, std::string>> set;
};
/// The same from what it sets as JSON.
PivotRow pivot_row(std::string id, std::string label, std::string group, const std::string& set_json);
/// Of all rows of a sweep's table, in its order. Throws: Error{kNotFound}.
std::vector<PivotRow> pivot_rows(Database& db, const std::string& sweep);

/// Where a row stands in a pivot.
struct PivotPlace {
  std::string line, line_label;  ///< what names its line's rows have in common
  std::string level;             ///< of the factor, "–" without one; of several all of theirs: "8, block"
};
struct PivotLayout {
  std::vector<PivotPlace> rows;     ///< one for each
  std::vector<std::string> levels;  ///< that rows have, by those of the first factor, then of the second
};
/// Rows that differ in these factors alone stand in one line. `by`: dotted keys; `with`: those that vary
/// together with them, and tell no lines apart.
PivotLayout pivot_layout(const std::vector<PivotRow>& rows, const std::vector<std::string>& by,
                         const std::vector<std::string>& with = {});

/// The level that a row has of one factor, by its dotted key; "–" without one.
std::string pivot_level(const PivotRow& row, const std::string& by);

/// What rows differ in.
struct PivotFactor {
  std::string name;                 ///< the shortest ending of `key` that tells it apart
  std::string key;                  ///< dotted
  std::vector<std::string> levels;  ///< two or more, in the order of the rows
};
/// The factors that rows are called by ("groups=2,layout=block"); of rows with other names, what they set.
std::vector<PivotFactor> pivot_factors(const std::vector<PivotRow>& rows);

}  // namespace abl::storage
