// SPDX-License-Identifier: Apache-2.0
#include "storage/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/metric_name.h"
#include "storage/equal_curves.h"
#include "storage/sweep_store.h"
#include "storage/trial_counts.h"

namespace abl::storage {
namespace {

/// Everything that a row's cells need to know of the row.
struct Row {
  int position = 0;
  std::string id, label, set_json, model_hash;
};

std::vector<NewColumn> read_columns(Database& db, SweepId sweep) {
  return db
      .prepared(R"sql(SELECT name, heading, kind, source, take, unit, better, digits FROM sweep_column
                           WHERE sweep_id = :sweep ORDER BY position)sql")
      .bind(":sweep", sweep)
      .all([](const Statement& row) {
        return NewColumn{
            .name = row.text(0),
            .heading = row.text(1),
            .kind = row.text(2),
            .source = row.text(3),
            .take = row.text(4),
            .unit = row.text(5),
            .better = row.text(6),
            .digits = row.integer(7) < 0 ? std::nullopt : std::optional{static_cast<int>(row.integer(7))}};
      });
}

TrialCounts count_trials(Database& db, SweepId sweep, int row) {
  static const std::string sql =
      "SELECT " + kCountTrials +
      " FROM sweep_trial st JOIN trial t ON t.id = st.trial_id WHERE st.sweep_id = :sweep AND st.row = :row";
  return db.prepared(sql.c_str())
      .bind(":sweep", sweep)
      .bind(":row", row)
      .one([](const Statement& s) { return read_counts(s, 0); })
      .value();
}

/// "reported no val/top1; it reported acc, loss", of the completed trials of a row that lack a metric.
std::string what_is_lacking(Database& db, SweepId sweep, const Row& row, const NewColumn& column) {
  constexpr std::size_t kShown = 8;
  const auto names = db.prepared(R"sql(
      SELECT DISTINCT m.name FROM sweep_trial st JOIN trial t ON t.id = st.trial_id AND t.state = 'completed'
      JOIN metric_summary ms ON ms.run_id = t.run_id JOIN metric m ON m.id = ms.metric_id
      WHERE st.sweep_id = :sweep AND st.row = :row
        AND NOT EXISTS (SELECT 1 FROM metric_summary own JOIN metric o ON o.id = own.metric_id
                        WHERE own.run_id = t.run_id AND o.name = :name) ORDER BY m.name)sql")
                         .bind(":sweep", sweep)
                         .bind(":row", row.position)
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
std::string why_no_metric(Database& db, SweepId sweep, const Row& row, const TrialCounts& trials) {
  if (trials.open() == 0) {
    const auto reason =
        db.prepared(R"sql(SELECT CASE t.state WHEN 'held' THEN '' ELSE 'failed: ' END || t.reason
                                          FROM sweep_trial st JOIN trial t ON t.id = st.trial_id
                                          WHERE st.sweep_id = :sweep AND st.row = :row AND t.state IN ('failed', 'held')
                                          ORDER BY t.state LIMIT 1)sql")
            .bind(":sweep", sweep)
            .bind(":row", row.position)
            .one([](const Statement& s) { return s.text(0); });
    return reason.value_or("cancelled");
  }
  return fmt::format("no trial completed yet: {} running, {} waiting", trials.leased + trials.running,
                     trials.queued);
}

/// What `best` takes: as the column says, otherwise by the metric's name.
bool lower_is_better(const NewColumn& column) {
  return (column.better == "none" || column.better.empty()
              ? to_text(better_by_name(column.source))
              : std::string_view{column.better}) == to_text(Better::kLower);
}

Cell metric_cell(Database& db, SweepId sweep, const Row& row, const NewColumn& column,
                 const TrialCounts& trials) {
  Cell cell;
  const std::string take = column.take != "best" ? column.take : lower_is_better(column) ? "min" : "max";
  cell.values = db.prepared(R"sql(
      SELECT t.run_id, t.id, st.seed,
             CASE :take WHEN 'min' THEN ms.min WHEN 'max' THEN ms.max
                        WHEN 'mean' THEN ms.sum / ms.finite ELSE COALESCE(ms.last, ms.last_kind) END,
             t.result_version < t.due_version,
             CASE :take WHEN 'last' THEN 0 ELSE CASE WHEN ms.finite > 0 THEN ms.count - ms.finite ELSE 0 END END
      FROM sweep_trial st
      JOIN trial t ON t.id = st.trial_id AND t.state = 'completed'
      JOIN metric_summary ms ON ms.run_id = t.run_id
      JOIN metric m ON m.id = ms.metric_id AND m.name = :name
      WHERE st.sweep_id = :sweep AND st.row = :row ORDER BY st.seed_index)sql")
                    .bind(":take", take)
                    .bind(":name", column.source)
                    .bind(":sweep", sweep)
                    .bind(":row", row.position)
                    .all([&](const Statement& s) {
                      cell.before_mend += s.integer(4) != 0;
                      const std::string kind = s.text(3);
                      const double infinity = std::numeric_limits<double>::infinity();
                      const double value = kind == "Infinity"              ? infinity
                                           : kind == "-Infinity"           ? -infinity
                                           : s.is_null(3) || kind == "NaN" ? std::nan("")
                                                                           : s.real(3);
                      return CellValue{.run = static_cast<RunId>(s.integer(0)),
                                       .trial = static_cast<TrialId>(s.integer(1)),
                                       .seed = s.integer(2),
                                       .value = value,
                                       .not_finite = static_cast<std::uint32_t>(s.integer(5))};
                    });
  cell.n = static_cast<std::uint32_t>(cell.values.size());
  cell.unfilled = trials.completed - std::min(trials.completed, cell.n);
  if (cell.unfilled > 0) cell.missing = what_is_lacking(db, sweep, row, column);
  if (cell.values.empty()) {
    cell.text = cell.unfilled > 0 ? "missing" : "";
    if (cell.unfilled == 0) cell.missing = why_no_metric(db, sweep, row, trials);
    return cell;
  }
  std::vector<double> values;
  for (const auto& value : cell.values) values.push_back(value.value);
  const MeanSd statistics = mean_sd(values);
  cell.mean = statistics.mean, cell.sd = statistics.sd;
  return cell;
}

Cell count_cell(Database& db, const Row& row, const NewColumn& column) {
  Cell cell{.of = 1};
  if (row.model_hash.empty()) {
    cell.missing = "the parameters of a command are not counted";
    return cell;
  }
  cell.mean = db.prepared(
                    "SELECT value FROM model_count WHERE model_hash = :hash AND mode = :mode ORDER BY "
                    "version DESC LIMIT 1")
                  .bind(":hash", row.model_hash)
                  .bind(":mode", column.source)
                  .one([](const Statement& s) { return s.real(0); });
  cell.n = cell.mean ? 1 : 0;
  if (!cell.mean) cell.missing = "not counted: that needs an ablate-trainer beside the scheduler";
  return cell;
}

Cell setting_cell(Database& db, const Row& row, const NewColumn& column) {
  Cell cell;
  cell.text = db.prepared("SELECT :set ->> ('$.\"' || :key || '\"')")
                  .bind(":set", row.set_json)
                  .bind(":key", column.source)
                  .one([](const Statement& s) { return s.text(0); })
                  .value();
  if (cell.text.empty()) cell.missing = "the row does not set " + column.source;
  return cell;
}

std::string paper_value(Database& db, SweepId sweep, const Row& row, const NewColumn& column) {
  return db
      .prepared("SELECT printed FROM sweep_paper WHERE sweep_id = :sweep AND row = :row AND name = :name")
      .bind(":sweep", sweep)
      .bind(":row", row.position)
      .bind(":name", column.name)
      .one([](const Statement& s) { return s.text(0); })
      .value_or("");
}

/// The texts of a column's cells, in the unit that fits them all, or the papers' values.
void write_column(Table& table, std::size_t index) {
  NewColumn& column = table.columns[index];
  double largest = 0;
  for (const TableRow& row : table.rows) {
    const Cell& cell = row.cells[index];
    if (!cell.paper.empty()) largest = std::numeric_limits<double>::infinity();
    largest = std::max(largest, cell.mean.value_or(0));
  }
  column.unit = fitting_unit(column.unit, largest);
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
              .columns = read_columns(db, sweep.id)};
  const auto rows =
      db.prepared(
            "SELECT position, id, label, set_json, model_hash FROM sweep_row WHERE sweep_id = :sweep ORDER "
            "BY position")
          .bind(":sweep", sweep.id)
          .all([](const Statement& s) {
            return Row{static_cast<int>(s.integer(0)), s.text(1), s.text(2), s.text(3), s.text(4)};
          });
  for (const Row& row : rows) {
    TableRow line{.id = row.id, .label = row.label, .trials = count_trials(db, sweep.id, row.position)};
    for (const NewColumn& column : table.columns) {
      Cell cell = column.kind == "metric"  ? metric_cell(db, sweep.id, row, column, line.trials)
                  : column.kind == "count" ? count_cell(db, row, column)
                                           : setting_cell(db, row, column);
      if (column.kind == "metric") cell.of = sweep.seeds;
      cell.paper = paper_value(db, sweep.id, row, column);
      for (const CellValue& value : cell.values)
        if (value.not_finite > 0)
          table.diverged.push_back({row.id, value.seed, column.source, column.take, value.not_finite});
      line.cells.push_back(std::move(cell));
    }
    table.rows.push_back(std::move(line));
  }
  for (std::size_t i = 0; i < table.columns.size(); ++i) write_column(table, i);
  look_at_runs(db, sweep.id, table);
  return table;
}

MeanSd mean_sd(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  MeanSd result{.mean = sum / n};
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.sd = std::sqrt(squares / (n - 1));
  return result;
}

}  // namespace abl::storage
