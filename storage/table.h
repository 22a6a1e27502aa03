// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
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

/// One row in one column. `text` has the same digits in every output: "79.79 ± 0.12", "23.68", "–"; "missing"
/// where a trial is completed and has no value.
struct Cell {
  std::optional<double> mean, sd;  ///< sd: sample standard deviation, from two values on
  std::uint32_t n = 0, of = 0;     ///< values there are, seeds of the sweep
  std::uint32_t unfilled = 0;      ///< completed trials whose runs lack the metric
  std::uint32_t before_mend = 0;   ///< of the values: made by a trainer that was mended since
  std::string text, paper, missing;
  std::vector<CellValue> values;
};
struct TableRow {
  std::string id, label;
  TrialCounts trials;
  std::vector<Cell> cells;
};
/// A run in a table that said lines of metrics which could not be read.
struct RefusedLines {
  std::string row;
  std::int64_t seed = 0;
  RunId run = 0;
  std::uint32_t lines = 0;
  std::string example;
};
struct Table {
  std::string sweep, baseline, paper_heading;
  std::vector<NewColumn> columns;
  std::vector<TableRow> rows;
  std::vector<std::vector<std::string>> equal_rows;  ///< ids of rows of different trials with equal curves
  std::map<int, std::vector<std::string>>
      before_mend;  ///< version that results would have -> ids of their rows
  std::vector<RefusedLines> refused;
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
