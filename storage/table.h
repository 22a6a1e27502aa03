// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "storage/database.h"
#include "storage/tuning_store.h"
#include "storage/types.h"

namespace abl::storage {

struct CellValue {
  RunId run = 0;
  TrialId trial = 0;
  std::int64_t seed = 0;
  double value = 0;
  /// Points of the metric that are not finite, where the value is taken of the others.
  std::uint32_t not_finite = 0;
  bool diverged = false;  ///< the metric's last point is not finite, whatever the column takes
  /// Of a metric that tells of the machine: other runs shared its GPU, so many at most.
  std::uint32_t packed_with = 0;
};

/// One row in one column. `text` has the same digits in every output: "79.79 ± 0.12", "23.68", "–"; "missing"
/// where a trial is completed and has no value, "1/3 diverged" where seeds diverged.
struct Cell {
  std::optional<double> mean, sd;  ///< sd: sample standard deviation, from two values on
  std::uint32_t n = 0, of = 0;     ///< values there are, seeds of the sweep
  std::uint32_t unfilled = 0;      ///< completed trials whose runs lack the metric
  std::uint32_t before_mend = 0;   ///< of the values: made by a trainer that was mended since
  std::uint32_t packed = 0;        ///< of the values: `packed_with` is not 0
  std::uint32_t older = 0;         ///< all values are of an older version of the command, so many
  std::string older_version;
  /// Seeds whose run diverged, or failed because it did: the cell then has no mean, for that of the others
  /// would be of the lucky ones.
  std::vector<std::int64_t> diverged;
  std::string text, paper, missing;
  std::optional<protocol::PaperMark> mark;  ///< how the paper prints it
  std::vector<CellValue> values;
};
struct TableRow {
  std::string id, label;
  std::string group;  ///< the heading that it stands under, or empty
  /// Id of the row that it is compared with, itself for a baseline, or empty. Where the table is pivoted it
  /// is the one of its own level, in the line of the row that the file names.
  std::string baseline;
  std::optional<protocol::NotTrained> not_trained;  ///< it has no trials
  std::string not_trained_why;
  std::string imported;  ///< what its values were imported from, or empty: they were measured here
  std::string line, line_label,
      level;  ///< where the table is pivoted: what names its line's rows have in common
  TrialCounts trials;
  bool planned = false;  ///< with a rule for seeds: its comparison is one of those that are corrected for
  std::uint32_t settled = 0;  ///< so many of its first seeds have ended, one way or the other
  std::vector<Cell> cells;
};
/// A seed of a row, in one column.
struct SeedCell {
  std::uint32_t index = 0;  ///< its place among the sweep's seeds
  std::int64_t seed = 0;
  TrialId trial = 0;
  TrialState state = TrialState::kQueued;  ///< cancelled where the claim was withdrawn before it ended
  RunId run = 0;                           ///< that has the value
  std::optional<double> value{};
  bool diverged = false;    ///< so that the cell has no mean
  std::int64_t curves = 0;  ///< a digest of all that its run reported; 0: not known
};
/// A run in a table that said metrics which are not kept: lines that could not be read, points of a step that
/// had another value.
struct LostMetrics {
  std::string row;
  std::int64_t seed = 0;
  RunId run = 0;
  std::uint32_t lines = 0, points = 0;
  std::string example;  ///< of the lines
};
/// A run that diverged, or was not finite for a while.
struct Diverged {
  std::string row;
  std::int64_t seed = 0;
  std::string metric;  ///< as the column has it, as `take`; empty where the trial failed
  protocol::Take take = protocol::Take::kLast;
  std::uint32_t points = 0;  ///< that are not finite, where the value is of the others
  bool at_end = false;       ///< it diverged; otherwise its last point is finite
  std::string reason;        ///< of a trial that failed because it diverged
};
/// A cell of a metric that tells of the machine, with values of runs that shared their GPUs.
struct Packed {
  std::string row, metric;
  std::uint32_t others = 0;  ///< at most
};
struct Table {
  std::string sweep, baseline, paper_heading;
  /// The table of the sweep's canonical text: these and `columns` as submitted, and what else is said of both
  /// that the store makes nothing of.
  std::string attributes_json;
  std::vector<Column> columns;
  std::vector<TableRow> rows;
  std::vector<Diverged> diverged;
  std::vector<std::vector<std::string>> equal_rows;  ///< ids of rows of different trials with equal curves
  std::map<int, std::vector<std::string>>
      before_mend;  ///< version that results would have -> ids of their rows
  std::vector<LostMetrics> lost;
  std::vector<Packed> packed;
  std::string tune_json;                     ///< of a sweep with `tune` or `search`, otherwise empty
  std::vector<TuningChoice> tuned;           ///< until now, in the order of the rows
  std::vector<std::string> holds;            ///< why trials are held that share what fails
  std::string seeds_rule;                    ///< as of SweepRecord
  std::vector<std::uint32_t> seeds_added{};  ///< revisions in which somebody added seeds
  std::vector<std::int64_t> seeds{};         ///< with a rule: all that a row may get, in their order
};

/// Says of each row of a table whose file asks for a pivot the line that it stands in, its level, and the row
/// of that level that it is compared with; `sets`: what they set, as JSON.
void place_in_pivot(Table& table, const std::vector<std::string>& sets);

/// The columns of a sweep's table, as submitted.
std::vector<Column> read_columns(Database& db, SweepId sweep);

/// Of each row of a sweep, in the table's order, `TableRow::baseline`.
std::vector<std::string> baselines_of(Database& db, const std::string& sweep);

/// The columns of a table that are expressions of others. A cell has a value for each seed that has all that
/// it is made of, where metrics of its own row are among it, otherwise one. What is missing, or has diverged,
/// leaves it without any, and says why.
class ExpressionColumns {
 public:
  ExpressionColumns() = default;
  /// An expression that cannot be read (of another release) leaves its cells empty, with the reason.
  explicit ExpressionColumns(const std::vector<Column>& columns);

  bool any() const { return !columns_.empty(); }
  /// Whether a column's cells have a value for each seed: a metric, or an expression with one.
  bool per_seed(std::size_t column) const { return per_seed_[column]; }
  /// Makes the cells of some rows anew. `baselines`: of each row of the table that with which it is compared.
  /// Those of the rows' baselines are right, or among the rows. `units`: of the columns, as submitted.
  void evaluate(Table& table, const std::set<std::size_t>& rows,
                const std::vector<std::optional<std::size_t>>& baselines,
                const std::vector<std::optional<protocol::Unit>>& units, std::uint32_t seeds) const;

 private:
  struct One;
  std::vector<std::shared_ptr<const One>> columns_;  // those that others are made of first
  std::vector<bool> per_seed_;
};

/// The table of a sweep: metrics from the completed run of each trial, counts from the cache, settings from
/// the rows. It is kept and brought up to date by the rows of which a trial changed: each of them is read
/// anew as a whole, so that a mean is the same to the last bit however its values came. What nobody reads
/// costs nothing. Thread: one.
class KeptTable {
 public:
  /// Reads all of it. Throws: Error{kNotFound}.
  KeptTable(Database& db, const std::string& sweep);
  ~KeptTable();
  KeptTable(KeptTable&&) noexcept;

  /// Reads these rows anew, and the counts of architectures where there are new ones. After an error it is of
  /// no use.
  void update(Database& db, const std::set<std::size_t>& rows);
  /// Whether no architecture was counted since.
  bool is_counted(Database& db) const;
  /// Whether nothing was chosen for a row since, or is no longer: then it is another table.
  bool is_tuned(Database& db) const;

  SweepId sweep() const { return sweep_; }
  std::uint32_t revision() const { return revision_; }  ///< of its content
  const Table& table() const { return table_; }
  Table take() && { return std::move(table_); }
  std::size_t bytes() const;  ///< about as much memory as it takes

 private:
  struct RowNotes {
    struct Curve {
      std::int64_t seed = 0, digest = 0;
      TrialId trial = 0;
    };
    std::vector<Curve> curves;
    std::vector<Diverged> diverged;
    std::vector<LostMetrics> lost;
    std::vector<int> due;  // versions that its results would have
    std::vector<Packed> packed;
    std::vector<std::int64_t> failed;  // seeds of trials that failed because they diverged
  };
  void read_counts(Database& db);
  void read_rows(Database& db, std::size_t first, std::size_t last);
  static void note_run(const Statement& line, const std::string& row, RowNotes& notes);
  void sum_up(Database& db, std::size_t row, std::size_t column, const std::optional<std::string>& reason);
  void note_packed(std::size_t row, std::size_t column);
  void read_older(Database& db, std::size_t row, const Column& column, Cell& cell) const;
  void keep_curves(std::size_t row);
  void forget_curves(std::size_t row);
  void evaluate(const std::set<std::size_t>* rows);
  void finish();
  void write_column(std::size_t index);

  SweepId sweep_ = 0;
  std::uint32_t revision_ = 1;
  bool adaptive_ = false;   // rows have as many seeds as a rule gives them
  bool has_older_ = false;  // values of an older version of its command
  std::uint32_t seeds_ = 0;
  std::pair<std::int64_t, std::int64_t> choices_known_{0, 0};  // how many, and the time of the last
  std::pair<std::int64_t, double> counts_known_{-1, 0};  // how many counts of architectures, and their sum
  Table table_;
  std::vector<std::optional<protocol::Unit>> units_;  // of the columns, as submitted
  ExpressionColumns expressions_;
  std::vector<std::optional<std::size_t>> baselines_;  // of each row, where there are expressions
  std::vector<RowNotes> notes_;                        // of each row
  std::set<std::size_t> noted_;                        // rows with something to note beside their curves
  std::unordered_map<std::uint64_t, std::uint32_t>
      curves_;             // of one seed: how many trials of the table have them
  std::size_t equal_ = 0;  // of them, those that several have
};

/// Of one row in a column of a metric, in the order of the sweep's seeds: what its cell is made of.
std::vector<SeedCell> read_seeds(Database& db, SweepId sweep, int row, const Column& column);

/// The same once. Throws: Error{kNotFound}.
Table read_table(Database& db, const std::string& sweep);

/// "79.79 ± 0.12" with `unit` applied ("M": /10^6, "G": /10^9, "%": as it is) and `digits` after the point,
/// where they are given. Otherwise as many as give the deviation two figures, or the value where there is
/// none, at least two: "0.0012 ± 0.0003", and "3.20e-9" or "1.23e17" where that would be too wide. `cut`:
/// further digits of the mean are left out in place of rounding.
std::string format_cell(const std::optional<double>& mean, const std::optional<double>& sd,
                        const std::optional<int>& digits, const std::optional<protocol::Unit>& unit,
                        bool cut = false);

/// What a value is divided by to be said in a unit.
double unit_factor(const std::optional<protocol::Unit>& unit);

/// "M" for "G" where the largest value is below a tenth of 10^9: of a unit that nobody asked for, it or a
/// smaller one.
std::optional<protocol::Unit> fitting_unit(const std::optional<protocol::Unit>& unit, double largest);

}  // namespace abl::storage
