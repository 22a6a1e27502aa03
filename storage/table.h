// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

struct CellValue {
  RunId run = 0;
  TrialId trial = 0;
  std::int64_t seed = 0;
  double value = 0;
};

/// One row in one column. `text` has the same digits in every output: "79.79 ± 0.12", "23.68", "–".
struct Cell {
  std::optional<double> mean, sd;  ///< sd: sample standard deviation, from two values on
  std::uint32_t n = 0, of = 0;     ///< values there are, seeds of the sweep
  std::string text, paper, missing;
  std::vector<CellValue> values;
};
struct TableRow {
  std::string id, label;
  TrialCounts trials;
  std::vector<Cell> cells;
};
struct Table {
  std::string sweep, baseline, paper_heading;
  std::vector<NewColumn> columns;
  std::vector<TableRow> rows;
};

/// The table of a sweep: metrics from the completed run of each trial, counts from the cache, settings from
/// the rows. Throws: Error{kNotFound}.
Table read_table(Database& db, const std::string& sweep);

/// Mean and sample standard deviation by the two-pass rule, in the order given: the same inputs give the same
/// bits.
struct MeanSd {
  double mean = 0;
  std::optional<double> sd;
};
MeanSd mean_sd(const std::vector<double>& values);

/// "79.79 ± 0.12" with `digits` after the point and `unit` applied ("M": /10^6, "G": /10^9, "%": as it is).
std::string format_cell(const std::optional<double>& mean, const std::optional<double>& sd, int digits,
                        const std::string& unit);

}  // namespace abl::storage
