// SPDX-License-Identifier: Apache-2.0
#include "storage/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "protocol/metrics.h"
#include "protocol/number.h"
#include "statistics/mean_sd.h"
#include "storage/curves.h"
#include "storage/stored_word.h"
#include "storage/sweep_store.h"

namespace abl::storage {

using protocol::Better;
using protocol::Take;
using protocol::Unit;

namespace {

/// A number as people round it: half away from zero, judged on its 15 decimal digits, so that 61.125
/// becomes 61.13 whatever its last bit is.
std::string rounded(double value, int digits) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "∞" : "-∞";
  const std::string scientific = fmt::format("{:.14e}", std::abs(value));  // d.dddddddddddddde±xx
  const int exponent = std::stoi(scientific.substr(16 + 1));
  std::string figures = scientific.substr(0, 1) + scientific.substr(2, 14);
  const int kept = exponent + 1 + digits;  // figures before the cut
  if (kept < 0)
    figures = "0";
  else if (kept < static_cast<int>(figures.size())) {
    const bool up = figures[static_cast<std::size_t>(kept)] >= '5';
    figures.resize(static_cast<std::size_t>(kept));
    figures.insert(0, "0");
    for (std::size_t i = figures.size(); up && i-- > 0;) {
      if (figures[i] != '9') {
        ++figures[i];
        break;
      }
      figures[i] = '0';
    }
  } else {
    figures.append(static_cast<std::size_t>(kept) - figures.size(), '0');
  }
  // `figures` is now the value times 10^digits, an integer
  const auto first = figures.find_first_not_of('0');
  figures.erase(0, first == std::string::npos ? figures.size() : first);
  const bool zero = figures.empty();
  if (static_cast<int>(figures.size()) <= digits)
    figures.insert(0, static_cast<std::size_t>(digits) + 1 - figures.size(), '0');
  if (digits > 0) figures.insert(figures.size() - static_cast<std::size_t>(digits), ".");
  return (value < 0 && !zero ? "-" : "") + figures;
}

/// "1.23e17": short however large or small a value is.
std::string with_exponent(double value, int digits) {
  std::string text = fmt::format("{:.{}e}", value, digits);
  const auto exponent = text.find('e') + 1;
  return text.substr(0, exponent) + std::to_string(std::stoi(text.substr(exponent)));
}

/// Of a value rounded to two figures: 0.0996 is 1.0e-1.
int exponent_of(double value) {
  const std::string text = fmt::format("{:.1e}", std::abs(value));
  return std::stoi(text.substr(text.find('e') + 1));
}

constexpr int kFewestDigits = 2, kMostDigits = 6;  // digits after the point, where nobody has said how many
constexpr double kWidest = 1e10;                   // the same: what is wider than a column should be
constexpr double kMadeUp = 1e15;                   // a double knows no more figures: those behind are made up
constexpr double kNoise = 1e-12;  // a deviation that is rounding alone, as a part of the mean

std::string with_digits(double value, int digits) {
  return std::isfinite(value) && std::abs(value) >= kMadeUp ? with_exponent(value, 2)
                                                            : rounded(value, digits);
}

/// As many digits as give the deviation two figures, or the value where there is none; at least two digits.
std::string as_needed(double mean, const std::optional<double>& sd) {
  const bool spread = sd && std::isfinite(*sd) && *sd > kNoise * std::abs(mean);
  const double judged = spread ? *sd : mean;
  const int digits = judged == 0 ? kFewestDigits : std::max(kFewestDigits, 1 - exponent_of(judged));
  const auto text = [&](double value, int figures) {
    if (!std::isfinite(value) || value == 0) return rounded(value, kFewestDigits);
    const bool plain = std::abs(value) < kWidest && 1 - exponent_of(value) <= kMostDigits;
    return plain ? rounded(value, std::min(digits, kMostDigits)) : with_exponent(value, figures);
  };
  const int figures = spread && mean != 0
                          ? std::clamp(exponent_of(mean) - exponent_of(*sd) + 1, kFewestDigits, kMostDigits)
                          : kFewestDigits;
  if (digits <= kMostDigits && std::abs(mean) < kWidest)
    return rounded(mean, digits) + (sd ? " ± " + with_digits(*sd, digits) : "");
  return text(mean, figures) + (sd ? " ± " + text(*sd, 1) : "");
}

}  // namespace

double unit_factor(const std::optional<Unit>& unit) {
  if (!unit) return 1;
  switch (*unit) {
    case Unit::kPercent:
      return 1;
    case Unit::kMillion:
      return 1e6;
    case Unit::kBillion:
      return 1e9;
  }
  return 1;
}

std::optional<Unit> fitting_unit(const std::optional<Unit>& unit, double largest) {
  for (const Unit smaller : {Unit::kBillion, Unit::kMillion})
    if (unit_factor(smaller) <= unit_factor(unit) && largest >= 0.1 * unit_factor(smaller)) return smaller;
  return largest > 0 ? std::nullopt : unit;
}

std::string format_cell(const std::optional<double>& mean, const std::optional<double>& sd,
                        const std::optional<int>& digits, const std::optional<Unit>& unit) {
  if (!mean) return "–";
  const double value = *mean / unit_factor(unit);
  if (!std::isfinite(value)) return rounded(value, 0);
  const auto spread = sd ? std::optional{*sd / unit_factor(unit)} : std::nullopt;
  if (!digits) return as_needed(value, spread);
  return with_digits(value, *digits) + (spread ? " ± " + with_digits(*spread, *digits) : "");
}

namespace {

std::vector<Column> read_columns(Database& db, SweepId sweep) {
  return db
      .prepared(
          R"sql(SELECT name, heading, kind, source, take, unit, better, digits, unit_fits FROM sweep_column
                           WHERE sweep_id = :sweep ORDER BY position)sql")
      .bind(":sweep", sweep)
      .all([](const Statement& row) {
        const std::string unit = row.text(5);
        return Column{
            .name = row.text(0),
            .heading = row.text(1),
            .kind = from_word<Column::Kind>("kind of a column", row.text(2)),
            .source = row.text(3),
            .take = from_word<Take>("'take' of a column", row.text(4)),
            .unit = unit.empty() ? std::nullopt : std::optional{from_word<Unit>("unit of a column", unit)},
            .better = from_word<Better>("'better' of a column", row.text(6)),
            .digits = row.integer(7) < 0 ? std::nullopt : std::optional{static_cast<int>(row.integer(7))},
            .unit_fits = row.integer(8) != 0};
      });
}

std::string read_attributes(Database& db, SweepId sweep) {
  return db
      .prepared(
          "SELECT CASE WHEN json_valid(canonical) THEN canonical -> '$.table' END FROM sweep WHERE id = "
          ":sweep")
      .bind(":sweep", sweep)
      .one([](const Statement& row) { return row.is_null(0) ? std::string{"{}"} : row.text(0); })
      .value();
}

/// Columns that count the trials `t` of claims `st` by state, as their sweep sees them.
const std::string kCountTrials = R"sql(
    COUNT(*) FILTER (WHERE t.state = 'queued' AND NOT st.withdrawn),
    COUNT(*) FILTER (WHERE t.state = 'leased' AND NOT st.withdrawn),
    COUNT(*) FILTER (WHERE t.state = 'running' AND NOT st.withdrawn),
    COUNT(*) FILTER (WHERE t.state = 'completed'), COUNT(*) FILTER (WHERE t.state = 'failed'),
    COUNT(*) FILTER (WHERE t.state = 'held' AND NOT st.withdrawn),
    COUNT(*) FILTER (WHERE t.state = 'cancelled' OR (st.withdrawn AND t.state IN ('queued', 'leased', 'running', 'held'))),
    COUNT(*) FILTER (WHERE t.state = 'completed' AND st.unfilled > 0))sql";

/// What these columns hold, from `first` on.
TrialCounts read_counts(const Statement& row, int first) {
  const auto n = [&](int column) { return static_cast<std::uint32_t>(row.integer(first + column)); };
  return {.queued = n(0),
          .leased = n(1),
          .running = n(2),
          .completed = n(3),
          .failed = n(4),
          .held = n(5),
          .cancelled = n(6),
          .unfilled = n(7)};
}

/// The rows, without cells.
std::vector<TableRow> read_rows(Database& db, SweepId sweep) {
  auto rows = db.prepared("SELECT id, label FROM sweep_row WHERE sweep_id = :sweep ORDER BY position")
                  .bind(":sweep", sweep)
                  .all([](const Statement& s) { return TableRow{.id = s.text(0), .label = s.text(1)}; });
  static const std::string sql =
      "SELECT st.row, " + kCountTrials +
      " FROM sweep_trial st JOIN trial t ON t.id = st.trial_id WHERE st.sweep_id = :sweep GROUP BY st.row";
  auto& counts = db.prepared(sql.c_str());
  counts.bind(":sweep", sweep);
  while (counts.step()) rows.at(static_cast<std::size_t>(counts.integer(0))).trials = read_counts(counts, 1);
  return rows;
}

/// "reported no val/top1; it reported acc, loss", of the completed trials of a row that lack a metric.
std::string what_is_lacking(Database& db, SweepId sweep, std::size_t row, const Column& column) {
  constexpr std::size_t kShown = 8;
  const auto names = db.prepared(R"sql(
      SELECT DISTINCT m.name FROM sweep_trial st JOIN trial t ON t.id = st.trial_id AND t.state = 'completed'
      JOIN metric_summary ms ON ms.run_id = t.run_id JOIN metric m ON m.id = ms.metric_id
      WHERE st.sweep_id = :sweep AND st.row = :row
        AND NOT EXISTS (SELECT 1 FROM metric_summary own JOIN metric o ON o.id = own.metric_id
                        WHERE own.run_id = t.run_id AND o.name = :name) ORDER BY m.name)sql")
                         .bind(":sweep", sweep)
                         .bind(":row", static_cast<std::int64_t>(row))
                         .bind(":name", column.source)
                         .all([](const Statement& s) { return s.text(0); });
  std::string text = "reported no " + column.source + "; it reported ";
  if (names.empty()) return text + "no metric at all";
  text += fmt::format(
      "{}", fmt::join(names.begin(),
                      names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kShown)), ", "));
  return names.size() > kShown ? text + fmt::format(" and {} more", names.size() - kShown) : text;
}

/// Why no trial of a row has a value yet.
std::string why_no_metric(Database& db, SweepId sweep, std::size_t row, const TrialCounts& trials) {
  if (trials.open() == 0) {
    const auto reason =
        db.prepared(R"sql(SELECT CASE t.state WHEN 'held' THEN '' ELSE 'failed: ' END || t.reason
                                          FROM sweep_trial st JOIN trial t ON t.id = st.trial_id
                                          WHERE st.sweep_id = :sweep AND st.row = :row AND t.state IN ('failed', 'held')
                                          ORDER BY t.state LIMIT 1)sql")
            .bind(":sweep", sweep)
            .bind(":row", static_cast<std::int64_t>(row))
            .one([](const Statement& s) { return s.text(0); });
    return reason.value_or("cancelled");
  }
  return fmt::format("no completed trial yet: {} running, {} waiting", trials.leased + trials.running,
                     trials.queued);
}

/// What `best` takes: as the column says, otherwise by the metric's name.
bool lower_is_better(const Column& column) {
  const Better better =
      column.better == Better::kNone ? protocol::better_by_name(column.source) : column.better;
  return better == Better::kLower;
}

/// Adds to each row its values of a metric.
void read_values(Database& db, SweepId sweep, const Column& column, std::vector<Cell>& cells) {
  const Take take = column.take != Take::kBest ? column.take
                    : lower_is_better(column)  ? Take::kMin
                                               : Take::kMax;
  auto& values = db.prepared(R"sql(
      SELECT st.row, t.run_id, t.id, st.seed,
             CASE :take WHEN 'min' THEN ms.min WHEN 'max' THEN ms.max
                        WHEN 'mean' THEN ms.sum / ms.finite ELSE COALESCE(ms.last, ms.last_kind) END,
             t.result_version < t.due_version,
             CASE :take WHEN 'last' THEN 0 ELSE CASE WHEN ms.finite > 0 THEN ms.count - ms.finite ELSE 0 END END
      FROM sweep_trial st
      JOIN trial t ON t.id = st.trial_id AND t.state = 'completed'
      JOIN metric_summary ms ON ms.run_id = t.run_id AND ms.metric_id = (SELECT id FROM metric WHERE name = :name)
      WHERE st.sweep_id = :sweep ORDER BY st.row, st.seed_index)sql");
  values.bind(":take", name_of(take)).bind(":name", column.source).bind(":sweep", sweep);
  while (values.step()) {
    Cell& cell = cells.at(static_cast<std::size_t>(values.integer(0)));
    cell.values.push_back({.run = static_cast<RunId>(values.integer(1)),
                           .trial = static_cast<TrialId>(values.integer(2)),
                           .seed = values.integer(3),
                           .value = values.is_null(4)
                                        ? std::nan("")
                                        : protocol::non_finite_value(values.text(4)).value_or(values.real(4)),
                           .not_finite = static_cast<std::uint32_t>(values.integer(6))});
    cell.before_mend += values.integer(5) != 0;
  }
}

std::vector<Cell> metric_cells(Database& db, const SweepRecord& sweep, const Column& column,
                               const std::vector<TableRow>& rows) {
  std::vector<Cell> cells(rows.size());
  read_values(db, sweep.id, column, cells);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    Cell& cell = cells[row];
    const TrialCounts& trials = rows[row].trials;
    cell.of = sweep.seeds;
    cell.n = static_cast<std::uint32_t>(cell.values.size());
    cell.unfilled = trials.completed - std::min(trials.completed, cell.n);
    if (cell.unfilled > 0) {
      cell.missing = what_is_lacking(db, sweep.id, row, column);
      if (cell.n == 0) cell.text = "missing";
    } else if (cell.n == 0) {
      cell.missing = why_no_metric(db, sweep.id, row, trials);
    }
    if (cell.n == 0) continue;
    std::vector<double> values;
    for (const auto& value : cell.values) values.push_back(value.value);
    const statistics::MeanSd spread = statistics::mean_sd(values);
    cell.mean = spread.mean, cell.sd = spread.sd;
  }
  return cells;
}

std::vector<Cell> count_cells(Database& db, const SweepRecord& sweep, const Column& column) {
  return db
      .prepared(R"sql(
      SELECT model_hash = '', (SELECT value FROM model_count mc
                               WHERE mc.model_hash = r.model_hash AND mode = :mode ORDER BY version DESC LIMIT 1)
      FROM sweep_row r WHERE sweep_id = :sweep ORDER BY position)sql")
      .bind(":mode", column.source)
      .bind(":sweep", sweep.id)
      .all([](const Statement& row) {
        Cell cell{.of = 1};
        if (row.integer(0) != 0)
          cell.missing = "not counted for command: trials";
        else if (row.is_null(1))
          cell.missing = "not counted: no ablate-trainer beside the scheduler";
        else
          cell.mean = row.real(1), cell.n = 1;
        return cell;
      });
}

std::vector<Cell> setting_cells(Database& db, const SweepRecord& sweep, const Column& column) {
  return db
      .prepared(
          "SELECT set_json ->> ('$.\"' || :key || '\"') FROM sweep_row WHERE sweep_id = :sweep ORDER BY "
          "position")
      .bind(":key", column.source)
      .bind(":sweep", sweep.id)
      .all([&](const Statement& row) {
        Cell cell{.text = row.text(0)};
        if (cell.text.empty()) cell.missing = "the row does not set " + column.source;
        return cell;
      });
}

std::vector<Cell> cells_of_kind(Database& db, const SweepRecord& sweep, const Column& column,
                                const std::vector<TableRow>& rows) {
  switch (column.kind) {
    case Column::Kind::kMetric:
      return metric_cells(db, sweep, column, rows);
    case Column::Kind::kCount:
      return count_cells(db, sweep, column);
    case Column::Kind::kSetting:
      return setting_cells(db, sweep, column);
  }
  return {};
}

/// A cell for each row: a few queries for a column, however many rows there are.
std::vector<Cell> read_cells(Database& db, const SweepRecord& sweep, const Column& column,
                             const std::vector<TableRow>& rows) {
  std::vector<Cell> cells = cells_of_kind(db, sweep, column, rows);
  auto& papers = db.prepared("SELECT row, printed FROM sweep_paper WHERE sweep_id = :sweep AND name = :name");
  papers.bind(":sweep", sweep.id).bind(":name", column.name);
  while (papers.step()) cells.at(static_cast<std::size_t>(papers.integer(0))).paper = papers.text(1);
  return cells;
}

/// The texts of a column's cells, in the unit that fits them all, or the papers' values.
void write_column(Table& table, std::size_t index) {
  Column& column = table.columns[index];
  double largest = 0;
  for (const TableRow& row : table.rows) {
    const Cell& cell = row.cells[index];
    if (!cell.paper.empty()) largest = std::numeric_limits<double>::infinity();
    largest = std::max(largest, cell.mean.value_or(0));
  }
  if (column.unit_fits) column.unit = fitting_unit(column.unit, largest);
  for (TableRow& row : table.rows)
    if (Cell& cell = row.cells[index]; cell.text.empty())
      cell.text = format_cell(cell.mean, cell.sd, column.digits, column.unit);
}

/// What is worth a note of the completed trials of a table, from what is kept of each run.
void look_at_runs(Database& db, SweepId sweep, Table& table) {
  EqualCurves curves;
  auto& runs = db.prepared(R"sql(
      SELECT st.row, st.seed, t.id, run.id, run.curves, run.refused_lines, run.refused_example, run.repeated_points,
             CASE WHEN t.result_version < t.due_version THEN t.due_version ELSE 0 END
      FROM sweep_trial st JOIN trial t ON t.id = st.trial_id AND t.state = 'completed' JOIN run ON run.id = t.run_id
      WHERE st.sweep_id = :sweep ORDER BY st.row, st.seed_index)sql");
  runs.bind(":sweep", sweep);
  while (runs.step()) {
    const auto row = static_cast<std::size_t>(runs.integer(0));
    const std::string& id = table.rows.at(row).id;
    curves.add(row, runs.integer(1), runs.integer(4), static_cast<TrialId>(runs.integer(2)));
    if (runs.integer(5) > 0 || runs.integer(7) > 0)
      table.lost.push_back({id, runs.integer(1), static_cast<RunId>(runs.integer(3)),
                            static_cast<std::uint32_t>(runs.integer(5)),
                            static_cast<std::uint32_t>(runs.integer(7)), runs.text(6)});
    if (const auto due = static_cast<int>(runs.integer(8)); due > 0)
      if (auto& rows = table.before_mend[due]; rows.empty() || rows.back() != id) rows.push_back(id);
  }
  for (const auto& group : curves.groups()) {
    auto& ids = table.equal_rows.emplace_back();
    for (const std::size_t row : group) ids.push_back(table.rows[row].id);
  }
}

}  // namespace

Table read_table(Database& db, const std::string& name) {
  const Transaction snapshot{db, Transaction::kRead};
  const SweepRecord sweep = SweepStore{db}.get(name);
  Table table{.sweep = name,
              .baseline = sweep.baseline,
              .paper_heading = sweep.paper_heading,
              .attributes_json = read_attributes(db, sweep.id),
              .columns = read_columns(db, sweep.id)};
  table.rows = read_rows(db, sweep.id);
  for (const Column& column : table.columns) {
    auto cells = read_cells(db, sweep, column, table.rows);
    for (std::size_t row = 0; row < table.rows.size(); ++row)
      table.rows[row].cells.push_back(std::move(cells[row]));
  }
  for (const TableRow& row : table.rows)
    for (std::size_t i = 0; i < row.cells.size(); ++i)
      for (const CellValue& value : row.cells[i].values)
        if (value.not_finite > 0)
          table.diverged.push_back(
              {row.id, value.seed, table.columns[i].source, table.columns[i].take, value.not_finite});
  for (std::size_t i = 0; i < table.columns.size(); ++i) write_column(table, i);
  look_at_runs(db, sweep.id, table);
  return table;
}

}  // namespace abl::storage
