// SPDX-License-Identifier: Apache-2.0
#include "storage/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "protocol/metrics.h"
#include "protocol/number.h"
#include "protocol/probe_results.h"
#include "statistics/mean_sd.h"
#include "storage/probe_store.h"

namespace abl::storage {

using protocol::Better;
using protocol::Take;

namespace {

/// "reported no val/top1; it reported acc, loss", of the completed trials of a row that lack a metric.
std::string what_is_lacking(Database& db, SweepId sweep, std::size_t row, const Column& column) {
  constexpr std::size_t kShown = 8;
  const auto names = db.prepared(R"sql(
      SELECT DISTINCT m.name FROM sweep_trial st JOIN trial t ON t.id = st.trial_id AND t.state = 'completed'
      JOIN metric_summary ms ON ms.run_id = t.run_id JOIN metric m ON m.id = ms.metric_id
      WHERE st.sweep_id = :sweep AND st.row = :row
        AND NOT EXISTS (SELECT 1 FROM metric_summary own JOIN metric o ON o.id = own.metric_id
                        WHERE own.run_id = t.run_id AND o.name = :name)
      ORDER BY m.name NOT GLOB 'val*', m.name)sql")
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

/// What `best` takes: as the column says, otherwise by the metric's name.
bool lower_is_better(const Column& column) {
  const Better better =
      column.better == Better::kNone ? protocol::better_by_name(column.source) : column.better;
  return better == Better::kLower;
}

/// A metric column, as the pass over the trials takes it: its number in the table, and what it takes of a
/// metric.
struct Taken {
  std::size_t column = 0;
  std::string source;
  Take take = Take::kLast;  ///< never kBest
};

std::vector<Taken> taken_metrics(const std::vector<Column>& columns) {
  std::vector<Taken> taken;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    if (column.kind != Column::Kind::kMetric) continue;
    const Take take = column.take != Take::kBest ? column.take
                      : lower_is_better(column)  ? Take::kMin
                                                 : Take::kMax;
    taken.push_back({i, column.source, take});
  }
  return taken;
}

/// How many columns one pass over the trials reads: a trial costs more than a metric of its run.
constexpr std::size_t kColumnsAtOnce = 4;

/// Its value, how many of its points are not finite where the value is of the others, and whether there is
/// one; of column `slot` of a pass. What is taken is a number: a text would be compared anew for each trial.
std::string select_value(std::size_t slot) {
  return fmt::format(
      ", CASE :take{0} WHEN {1} THEN m{0}.min WHEN {2} THEN m{0}.max WHEN {3} THEN m{0}.sum / m{0}.finite "
      "ELSE COALESCE(m{0}.last, m{0}.last_kind) END, "
      "CASE :take{0} WHEN {4} THEN 0 ELSE CASE WHEN m{0}.finite > 0 THEN m{0}.count - m{0}.finite ELSE 0 "
      "END END, "
      "m{0}.run_id IS NOT NULL, m{0}.last IS NULL",
      slot, static_cast<int>(Take::kMin), static_cast<int>(Take::kMax), static_cast<int>(Take::kMean),
      static_cast<int>(Take::kLast));
}

std::string join_value(std::size_t slot) {
  return fmt::format(" LEFT JOIN metric_summary m{0} ON m{0}.run_id = run.id AND m{0}.metric_id = :metric{0}",
                     slot);
}

/// A line for each trial of some rows, in table order, with the run that it is completed by and that run's
/// values of so many columns.
std::string select_trials(std::size_t columns) {
  std::string values, joins;
  for (std::size_t slot = 0; slot < columns; ++slot) values += select_value(slot), joins += join_value(slot);
  return R"sql(
      SELECT st.row, st.seed, t.id, t.state, st.withdrawn, st.unfilled > 0, t.result_version < t.due_version, t.due_version,
             CASE WHEN t.state IN ('failed', 'held') OR t.command_json = '["ablate-import"]' THEN t.reason END,
             run.id, run.curves, run.refused_lines, run.refused_example, run.repeated_points, run.packed_with, st.seed_index)sql" +
         values + R"sql(
      FROM sweep_trial st JOIN trial t ON t.id = st.trial_id LEFT JOIN run ON run.id = t.run_id AND t.state = 'completed')sql" +
         joins +
         " WHERE st.sweep_id = :sweep AND st.row >= :first AND st.row <= :last ORDER BY st.row, "
         "st.seed_index";
}
constexpr int kFirstValue = 16, kValueColumns = 4;  // of that line

double value_of(const Statement& line, int column) {
  if (line.is_null(column)) return std::nan("");
  return protocol::non_finite_value(line.text(column)).value_or(line.real(column));
}

/// The same of `select_value`: only where the last value is not finite it may be a word, and to ask a number
/// for its text would print it.
double selected_value(const Statement& line, int column) {
  const bool may_be_word = line.integer(column + 3) != 0 || line.is_null(column);
  return may_be_word ? value_of(line, column) : line.real(column);
}

void count_trial(TrialCounts& counts, TrialState state, bool withdrawn, bool unfilled) {
  if (withdrawn && state != TrialState::kCompleted && state != TrialState::kFailed)
    state = TrialState::kCancelled;
  switch (state) {
    case TrialState::kQueued:
      ++counts.queued;
      break;
    case TrialState::kLeased:
      ++counts.leased;
      break;
    case TrialState::kRunning:
      ++counts.running;
      break;
    case TrialState::kCompleted:
      ++counts.completed;
      counts.unfilled += unfilled;
      break;
    case TrialState::kFailed:
      ++counts.failed;
      break;
    case TrialState::kHeld:
      ++counts.held;
      break;
    case TrialState::kCancelled:
      ++counts.cancelled;
      break;
  }
}

/// Whether a trial failed because it diverged: so say our trainer (docs/training.md), and the worker of what
/// `limits.nan` ends.
bool says_diverged(const std::string& reason) {
  return reason.starts_with("diverged") || reason.ends_with("its limits.nan") ||
         reason.find(" is not finite ") != std::string::npos;
}

std::optional<std::int64_t> metric_id(Database& db, const std::string& name) {
  return db.prepared("SELECT id FROM metric WHERE name = :name")
      .bind(":name", name)
      .one([](const Statement& row) { return row.integer(0); });
}

/// `select_trials` of some columns, at most kColumnsAtOnce; which sweep and rows is yet to be bound.
Statement& trials_with(Database& db, std::span<const Taken> columns) {
  static const auto kSql = [] {
    std::array<std::string, kColumnsAtOnce + 1> all;
    for (std::size_t count = 0; count < all.size(); ++count) all[count] = select_trials(count);
    return all;
  }();
  auto& lines = db.prepared(kSql[columns.size()].c_str());
  for (std::size_t slot = 0; slot < columns.size(); ++slot) {
    lines.bind(fmt::format(":take{}", slot).c_str(), static_cast<int>(columns[slot].take));
    lines.bind(fmt::format(":metric{}", slot).c_str(), metric_id(db, columns[slot].source));
  }
  return lines;
}

/// As its sweep sees it, which may have withdrawn its claim.
bool has_ended(TrialState state, bool withdrawn) {
  return withdrawn || state == TrialState::kCompleted || state == TrialState::kFailed ||
         state == TrialState::kCancelled;
}

/// "imported from points.csv", of one trial of a row.
void note_import(const std::string& reason, TableRow& row) {
  constexpr std::string_view kBefore = "imported from ";
  if (!reason.starts_with(kBefore)) return;
  const std::string from = reason.substr(kBefore.size());
  if (row.imported.empty())
    row.imported = from;
  else if (row.imported != from && row.imported.find(from + ", ") == std::string::npos &&
           !row.imported.ends_with(", " + from))
    row.imported += ", " + from;
}

/// Why no trial of a row has a value yet. `reason`: of one that failed or is held, where there is one.
std::string why_no_metric(const TrialCounts& trials, const std::optional<std::string>& reason) {
  if (trials.total() == 0 && !reason) return "no trials yet";  // its values are being looked for
  if (trials.open() == 0) return reason.value_or("cancelled");
  return fmt::format("no completed trial yet: {} running, {} waiting", trials.leased + trials.running,
                     trials.queued);
}

}  // namespace

/// Everything of some rows that is of their trials.
void KeptTable::read_rows(Database& db, std::size_t first, std::size_t last) {
  const std::vector<Taken> taken = taken_metrics(table_.columns);
  std::vector<std::optional<std::string>> reasons(last - first +
                                                  1);  // of failed trials, otherwise of held ones
  std::vector<bool> has_failed(last - first + 1);
  for (std::size_t row = first; row <= last; ++row) {
    forget_curves(row);
    notes_[row] = {};
    table_.rows[row].trials = {};
    table_.rows[row].settled = 0;
    table_.rows[row].imported.clear();
    for (const Taken& metric : taken) {
      Cell& cell = table_.rows[row].cells[metric.column];
      std::string paper = std::move(cell.paper);
      auto mark = std::move(cell.mark);
      std::vector<CellValue> values = std::move(cell.values);
      values.clear();
      cell = {.of = table_.rows[row].not_trained ? 0 : seeds_,
              .paper = std::move(paper),
              .mark = std::move(mark),
              .values = std::move(values)};
    }
  }
  for (std::size_t begin = 0; begin == 0 || begin < taken.size(); begin += kColumnsAtOnce) {
    const std::size_t count = std::min(kColumnsAtOnce, taken.size() - std::min(taken.size(), begin));
    auto& lines = trials_with(db, std::span{taken}.subspan(begin, count));
    lines.bind(":sweep", sweep_)
        .bind(":first", static_cast<std::int64_t>(first))
        .bind(":last", static_cast<std::int64_t>(last));
    while (lines.step()) {
      const auto place = static_cast<std::size_t>(lines.integer(0));
      TableRow& row = table_.rows.at(place);
      const std::int64_t seed = lines.integer(1);
      const auto trial = static_cast<TrialId>(lines.integer(2));
      const bool is_completed = !lines.is_null(9);
      const auto run = static_cast<RunId>(lines.integer(9));
      if (begin == 0) {
        const TrialState state = trial_state(lines.text(3));
        count_trial(row.trials, state, lines.integer(4) != 0, lines.integer(5) != 0);
        if (lines.integer(15) == row.settled && has_ended(state, lines.integer(4) != 0)) ++row.settled;
        auto& reason = reasons[place - first];
        if (state == TrialState::kFailed && says_diverged(lines.text(8))) {
          notes_[place].failed.push_back(seed);
          notes_[place].diverged.push_back(
              {.row = row.id, .seed = seed, .at_end = true, .reason = lines.text(8)});
        }
        if (state == TrialState::kFailed && !has_failed[place - first])
          has_failed[place - first] = true, reason = "failed: " + lines.text(8);
        else if (state == TrialState::kHeld && !reason)
          reason = lines.text(8);
        if (is_completed) note_run(lines, row.id, notes_[place]);
        if (is_completed && !lines.is_null(8)) note_import(lines.text(8), row);
      }
      for (std::size_t slot = 0; slot < count; ++slot) {
        const int value = kFirstValue + kValueColumns * static_cast<int>(slot);
        if (lines.integer(value + 2) == 0) continue;
        Cell& cell = row.cells[taken[begin + slot].column];
        cell.values.push_back({.run = run,
                               .trial = trial,
                               .seed = seed,
                               .value = selected_value(lines, value),
                               .not_finite = static_cast<std::uint32_t>(lines.integer(value + 1)),
                               .diverged = lines.integer(value + 3) != 0});
        if (const auto others = static_cast<std::uint32_t>(lines.integer(14));
            others > 0 && protocol::tells_of_the_machine(taken[begin + slot].source))
          cell.values.back().packed_with = others;
        cell.before_mend += lines.integer(6) != 0;
      }
    }
  }
  for (std::size_t row = first; row <= last; ++row) {
    for (const Taken& metric : taken) {
      if (adaptive_) table_.rows[row].cells[metric.column].of = table_.rows[row].trials.total();
      if (has_older_)
        read_older(db, row, table_.columns[metric.column], table_.rows[row].cells[metric.column]);
      sum_up(db, row, metric.column, reasons[row - first]);
      note_packed(row, metric.column);
    }
    keep_curves(row);
  }
}

std::vector<SeedCell> read_seeds(Database& db, SweepId sweep, int row, const Column& column) {
  const Taken taken = taken_metrics({column}).at(0);
  auto& lines = trials_with(db, {&taken, 1});
  lines.bind(":sweep", sweep).bind(":first", row).bind(":last", row);
  std::vector<SeedCell> seeds;
  while (lines.step()) {
    SeedCell seed{.index = static_cast<std::uint32_t>(lines.integer(15)),
                  .seed = lines.integer(1),
                  .trial = static_cast<TrialId>(lines.integer(2)),
                  .state = trial_state(lines.text(3)),
                  .curves = lines.integer(10)};
    const bool is_completed = !lines.is_null(9);
    if (lines.integer(4) != 0 && !is_completed) seed.state = TrialState::kCancelled;
    seed.diverged = seed.state == TrialState::kFailed && says_diverged(lines.text(8));
    if (is_completed && lines.integer(kFirstValue + 2) != 0) {
      seed.run = static_cast<RunId>(lines.integer(9));
      seed.value = selected_value(lines, kFirstValue);
      seed.diverged = lines.integer(kFirstValue + 3) != 0 || !std::isfinite(*seed.value);
    }
    seeds.push_back(seed);
  }
  return seeds;
}

/// What is worth a note of a completed trial, from what is kept of its run.
void KeptTable::note_run(const Statement& line, const std::string& row, RowNotes& notes) {
  const std::int64_t seed = line.integer(1);
  if (const std::int64_t digest = line.integer(10); digest != 0)
    notes.curves.push_back({seed, digest, static_cast<TrialId>(line.integer(2))});
  if (line.integer(11) > 0 || line.integer(13) > 0)
    notes.lost.push_back({row, seed, static_cast<RunId>(line.integer(9)),
                          static_cast<std::uint32_t>(line.integer(11)),
                          static_cast<std::uint32_t>(line.integer(13)), line.text(12)});
  if (const auto due = static_cast<int>(line.integer(7));
      line.integer(6) != 0 && std::ranges::find(notes.due, due) == notes.due.end())
    notes.due.push_back(due);
}

/// A cell from its values, which are there.
void KeptTable::sum_up(Database& db, std::size_t row, std::size_t column,
                       const std::optional<std::string>& reason) {
  Cell& cell = table_.rows[row].cells[column];
  const TrialCounts& trials = table_.rows[row].trials;
  cell.n = static_cast<std::uint32_t>(cell.values.size());
  cell.unfilled = cell.older > 0 ? 0 : trials.completed - std::min(trials.completed, cell.n);
  if (cell.unfilled > 0) {
    const Column& of = table_.columns[column];
    const bool is_probed = protocol::is_probe_metric(of.source);
    cell.missing =
        is_probed ? why_not_probed(db, sweep_, row, of.source) : what_is_lacking(db, sweep_, row, of);
    if (cell.n == 0)
      cell.text = !is_probed ? "missing" : cell.missing.starts_with("not probed") ? "not probed" : "none";
  } else if (cell.n == 0) {
    const TableRow& line = table_.rows[row];
    cell.missing = line.not_trained ? fmt::format("not trained: {}", line.not_trained_why)
                                    : why_no_metric(trials, reason);
  }
  RowNotes& notes = notes_[row];
  const Column& of = table_.columns[column];
  for (const CellValue& value : cell.values) {
    if (value.diverged) cell.diverged.push_back(value.seed);
    if (value.diverged || value.not_finite > 0)
      notes.diverged.push_back({.row = table_.rows[row].id,
                                .seed = value.seed,
                                .metric = of.source,
                                .take = of.take,
                                .points = value.not_finite,
                                .at_end = value.diverged});
  }
  if (!protocol::tells_of_the_machine(of.source))
    cell.diverged.insert(cell.diverged.end(), notes.failed.begin(), notes.failed.end());
  if (!cell.diverged.empty()) {
    std::ranges::sort(cell.diverged);
    cell.text = fmt::format("{}/{} diverged", cell.diverged.size(),
                            std::max<std::size_t>({cell.of, cell.n, cell.diverged.size()}));
    cell.missing = fmt::format("seed{} {} diverged", cell.diverged.size() == 1 ? "" : "s",
                               fmt::join(cell.diverged, ", "));
    return;
  }
  if (cell.n == 0) return;
  std::vector<double> values;
  for (const auto& value : cell.values) values.push_back(value.value);
  const statistics::MeanSd spread = statistics::mean_sd(values);
  cell.mean = spread.mean, cell.sd = spread.sd;
}

/// Of a cell without values: those of the version of the command before, while the new trials are not there.
void KeptTable::read_older(Database& db, std::size_t row, const Column& column, Cell& cell) const {
  if (!cell.values.empty() || table_.rows[row].trials.completed > 0) return;
  const Take take = column.take != Take::kBest ? column.take
                    : lower_is_better(column)  ? Take::kMin
                                               : Take::kMax;
  db.prepared(R"sql(
      SELECT f.seed, f.trial_id, t.run_id, f.version,
             CASE :take WHEN 'min' THEN m.min WHEN 'max' THEN m.max WHEN 'mean' THEN m.sum / m.finite
                        ELSE COALESCE(m.last, m.last_kind) END,
             CASE :take WHEN 'last' THEN 0 ELSE CASE WHEN m.finite > 0 THEN m.count - m.finite ELSE 0 END END,
             m.last IS NULL
      FROM sweep_former f JOIN trial t ON t.id = f.trial_id AND t.state = 'completed'
      JOIN metric_summary m ON m.run_id = t.run_id AND m.metric_id = :metric
      WHERE f.sweep_id = :sweep AND f.row = :row AND f.version IS NOT NULL
        AND f.revision = (SELECT MAX(o.revision) FROM sweep_former o JOIN trial ot ON ot.id = o.trial_id AND ot.state = 'completed'
                          WHERE o.sweep_id = f.sweep_id AND o.row = f.row AND o.version IS NOT NULL)
      ORDER BY f.seed)sql")
      .bind(":take", name_of(take))
      .bind(":metric", metric_id(db, column.source))
      .bind(":sweep", sweep_)
      .bind(":row", table_.rows[row].id)
      .all([&](const Statement& line) {
        cell.values.push_back({.run = static_cast<RunId>(line.integer(2)),
                               .trial = static_cast<TrialId>(line.integer(1)),
                               .seed = line.integer(0),
                               .value = value_of(line, 4),
                               .not_finite = static_cast<std::uint32_t>(line.integer(5)),
                               .diverged = line.integer(6) != 0});
        cell.older_version = line.text(3);
        return true;
      });
  cell.older = static_cast<std::uint32_t>(cell.values.size());
}

/// What is to be said of values of runs that shared their GPUs.
void KeptTable::note_packed(std::size_t row, std::size_t column) {
  Cell& cell = table_.rows[row].cells[column];
  Packed packed{.row = table_.rows[row].id, .metric = table_.columns[column].source};
  for (const CellValue& value : cell.values) {
    cell.packed += value.packed_with > 0;
    packed.others = std::max(packed.others, value.packed_with);
  }
  if (cell.packed > 0) notes_[row].packed.push_back(std::move(packed));
}

}  // namespace abl::storage
