// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/sweeps.pb.h"

namespace abl::views {

struct StatisticsMemo;

/// Says of each cell of values of seeds whether it differs from its baseline's by more than their spread
/// explains, and which are the best and the second of its column (`Cell.p`, `p_corrected`, `comparison`);
/// of columns whether they follow the paper's, and what factors explain of them. Every page and every printed
/// table takes its colours and its bold from here. A row whose seeds diverged is never better and never the
/// best. `memo`: has what an earlier state of the table needed; may be null.
void compare_cells(ablate::v1::Table& table, StatisticsMemo* memo = nullptr);

/// Of a pivoted table, whose cells are compared in its long form: the best and the second of each column, and
/// what is said of columns.
void rank_cells(ablate::v1::Table& table, StatisticsMemo* memo = nullptr);

/// Id of the row that a row is compared with, its own for a baseline; empty: with none. Where the table is
/// pivoted it is the row's word alone: the baseline's line may have none of its level.
inline const std::string& baseline_of(const ablate::v1::Table& table, const ablate::v1::TableRow& row) {
  return row.baseline().empty() && !table.has_pivot() ? table.baseline() : row.baseline();
}
inline bool is_baseline(const ablate::v1::Table& table, const ablate::v1::TableRow& row) {
  return row.id() == baseline_of(table, row);
}
/// Of each row the place of the row that it is compared with, or -1.
std::vector<int> references_of(const ablate::v1::Table& table);

/// The levels that the id of a row of factors is made of, "groups=2,layout=block": factor and level, in this
/// order. "base" has none; nothing where an id is not made of levels.
using Levels = std::vector<std::pair<std::string, std::string>>;
std::optional<Levels> levels_of(const std::string& id);

/// `Cell.statistics` of one row of a table that was compared. `baseline`: the row that it is compared with,
/// null where there is none. `head`: the table, with its columns; its rows do not matter.
void add_statistics(const ablate::v1::Table& head, const ablate::v1::TableRow* baseline,
                    ablate::v1::TableRow& row, StatisticsMemo* memo = nullptr);
/// Of all rows.
void add_statistics(ablate::v1::Table& table);

/// A number of a cell's statistics with the cell's digits, in the column's unit: "79.79".
std::string value_text(const ablate::v1::Column& column, const ablate::v1::Cell& cell, double value);
/// The same of a difference: "+1.24", and "±0.00" of one that is zero in these digits.
std::string difference_text(const ablate::v1::Column& column, const ablate::v1::Cell& cell, double value);
/// The same of an end of its interval: "+1.24", and "-0.00" of one below zero.
std::string bound_text(const ablate::v1::Column& column, const ablate::v1::Cell& cell, double value);

/// `Table.paper_agreement` and `Table.factor_analyses`: a part of `compare_cells`.
void add_analyses(ablate::v1::Table& table);

}  // namespace abl::views
