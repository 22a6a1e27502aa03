// SPDX-License-Identifier: Apache-2.0
#include "storage/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

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
/// becomes 61.13 whatever its last bit is; or `cut`, without further digits.
std::string rounded(double value, int digits, bool cut = false) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "∞" : "-∞";
  const std::string scientific = fmt::format("{:.14e}", std::abs(value));  // d.dddddddddddddde±xx
  const int exponent = std::stoi(scientific.substr(16 + 1));
  std::string figures = scientific.substr(0, 1) + scientific.substr(2, 14);
  const int kept = exponent + 1 + digits;  // figures before the cut
  if (kept < 0)
    figures = "0";
  else if (kept < static_cast<int>(figures.size())) {
    const bool up = !cut && figures[static_cast<std::size_t>(kept)] >= '5';
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

std::string with_digits(double value, int digits, bool cut = false) {
  return std::isfinite(value) && std::abs(value) >= kMadeUp ? with_exponent(value, 2)
                                                            : rounded(value, digits, cut);
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
                        const std::optional<int>& digits, const std::optional<Unit>& unit, bool cut) {
  if (!mean) return "–";
  const double value = *mean / unit_factor(unit);
  if (!std::isfinite(value)) return rounded(value, 0);
  const auto spread = sd ? std::optional{*sd / unit_factor(unit)} : std::nullopt;
  if (!digits) return as_needed(value, spread);
  return with_digits(value, *digits, cut) + (spread ? " ± " + with_digits(*spread, *digits) : "");
}

namespace {

std::vector<Column> read_columns(Database& db, SweepId sweep) {
  return db
      .prepared(
          R"sql(SELECT name, heading, kind, source, take, unit, better, digits, unit_fits, cut FROM sweep_column
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
            .unit_fits = row.integer(8) != 0,
            .cut = row.integer(9) != 0};
      });
}

/// Rows as submitted, without cells.
std::vector<TableRow> read_row_names(Database& db, const SweepRecord& sweep) {
  return db
      .prepared(
          "SELECT id, label, heading, baseline, not_trained, not_trained_why FROM sweep_row WHERE sweep_id = "
          ":sweep ORDER BY position")
      .bind(":sweep", sweep.id)
      .all([&](const Statement& s) {
        TableRow row{.id = s.text(0), .label = s.text(1), .group = s.text(2), .baseline = s.text(3)};
        if (row.baseline.empty()) row.baseline = sweep.baseline;
        row.not_trained = value_named<protocol::NotTrained>(s.text(4));
        row.not_trained_why = s.text(5);
        return row;
      });
}

/// What each row sets, as JSON.
std::vector<std::string> read_sets(Database& db, SweepId sweep) {
  return db.prepared("SELECT set_json FROM sweep_row WHERE sweep_id = :sweep ORDER BY position")
      .bind(":sweep", sweep)
      .all([](const Statement& row) { return row.text(0); });
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

/// What `best` takes: as the column says, otherwise by the metric's name.
bool lower_is_better(const Column& column) {
  const Better better =
      column.better == Better::kNone ? protocol::better_by_name(column.source) : column.better;
  return better == Better::kLower;
}

std::vector<Cell> count_cells(Database& db, SweepId sweep, const Column& column) {
  return db
      .prepared(R"sql(
      SELECT model_hash = '', (SELECT value FROM model_count mc
                               WHERE mc.model_hash = r.model_hash AND mode = :mode ORDER BY version DESC LIMIT 1)
      FROM sweep_row r WHERE sweep_id = :sweep ORDER BY position)sql")
      .bind(":mode", column.source)
      .bind(":sweep", sweep)
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

std::vector<Cell> setting_cells(Database& db, SweepId sweep, const Column& column) {
  return db
      .prepared(
          "SELECT set_json ->> ('$.\"' || :key || '\"') FROM sweep_row WHERE sweep_id = :sweep ORDER BY "
          "position")
      .bind(":key", column.source)
      .bind(":sweep", sweep)
      .all([&](const Statement& row) {
        Cell cell{.text = row.text(0)};
        if (cell.text.empty()) cell.missing = "the row does not set " + column.source;
        return cell;
      });
}

/// How many counts of architectures are stored, and their sum: as long as these are the same, so are the
/// counts.
std::pair<std::int64_t, double> counts_known(Database& db) {
  return db.prepared("SELECT COUNT(*), TOTAL(value) FROM model_count")
      .one([](const Statement& row) {
        return std::pair{row.integer(0), row.real(1)};
      })
      .value();
}

/// A metric column, as the pass over the trials takes it: its number in the table, and what it takes of a
/// metric.
struct Taken {
  std::size_t column = 0;
  std::string source, take;
};

std::vector<Taken> taken_metrics(const std::vector<Column>& columns) {
  std::vector<Taken> taken;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    if (column.kind != Column::Kind::kMetric) continue;
    const Take take = column.take != Take::kBest ? column.take
                      : lower_is_better(column)  ? Take::kMin
                                                 : Take::kMax;
    taken.push_back({i, column.source, std::string{name_of(take)}});
  }
  return taken;
}

/// How many columns one pass over the trials reads: a trial costs more than a metric of its run.
constexpr std::size_t kColumnsAtOnce = 4;

/// Its value, how many of its points are not finite where the value is of the others, and whether there is
/// one; of column `slot` of a pass.
std::string select_value(int slot) {
  return fmt::format(
      ", CASE :take{0} WHEN 'min' THEN m{0}.min WHEN 'max' THEN m{0}.max WHEN 'mean' THEN m{0}.sum / "
      "m{0}.finite "
      "ELSE COALESCE(m{0}.last, m{0}.last_kind) END, "
      "CASE :take{0} WHEN 'last' THEN 0 ELSE CASE WHEN m{0}.finite > 0 THEN m{0}.count - m{0}.finite ELSE 0 "
      "END END, "
      "m{0}.run_id IS NOT NULL",
      slot);
}

std::string join_value(int slot) {
  return fmt::format(" LEFT JOIN metric_summary m{0} ON m{0}.run_id = run.id AND m{0}.metric_id = :metric{0}",
                     slot);
}

/// A line for each trial of some rows, in table order, with the run that it is completed by and that run's
/// values.
const std::string& select_trials() {
  static const std::string kSql = [] {
    std::string values, joins;
    for (int slot = 0; slot < static_cast<int>(kColumnsAtOnce); ++slot)
      values += select_value(slot), joins += join_value(slot);
    return R"sql(
      SELECT st.row, st.seed, t.id, t.state, st.withdrawn, st.unfilled > 0, t.result_version < t.due_version, t.due_version,
             CASE WHEN t.state IN ('failed', 'held') THEN t.reason END,
             run.id, run.curves, run.refused_lines, run.refused_example, run.repeated_points, run.packed_with)sql" +
           values + R"sql(
      FROM sweep_trial st JOIN trial t ON t.id = st.trial_id LEFT JOIN run ON run.id = t.run_id AND t.state = 'completed')sql" +
           joins +
           " WHERE st.sweep_id = :sweep AND st.row >= :first AND st.row <= :last ORDER BY st.row, "
           "st.seed_index";
  }();
  return kSql;
}
constexpr int kFirstValue = 15, kValueColumns = 3;  // of that line

double value_of(const Statement& line, int column) {
  if (line.is_null(column)) return std::nan("");
  return protocol::non_finite_value(line.text(column)).value_or(line.real(column));
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

/// Why no trial of a row has a value yet. `reason`: of one that failed or is held, where there is one.
std::string why_no_metric(const TrialCounts& trials, const std::optional<std::string>& reason) {
  if (trials.open() == 0) return reason.value_or("cancelled");
  return fmt::format("no completed trial yet: {} running, {} waiting", trials.leased + trials.running,
                     trials.queued);
}

/// A seed's curves in 64 bits.
std::uint64_t key_of(std::int64_t seed, std::int64_t digest) {
  return static_cast<std::uint64_t>(digest) ^ (static_cast<std::uint64_t>(seed) * 0x9e3779b97f4a7c15);
}

}  // namespace

struct KeptTable::RowNotes {
  struct Curve {
    std::int64_t seed = 0, digest = 0;
    TrialId trial = 0;
  };
  std::vector<Curve> curves;
  std::vector<Diverged> diverged;
  std::vector<LostMetrics> lost;
  std::vector<int> due;  // versions that its results would have
  std::vector<Packed> packed;
};

KeptTable::KeptTable(Database& db, const std::string& name) {
  const Transaction snapshot{db, Transaction::kRead};
  const SweepRecord sweep = SweepStore{db}.get_brief(name);
  sweep_ = sweep.id;
  seeds_ = sweep.seeds;
  revision_ = sweep.revision;
  adaptive_ = !sweep.seeds_rule.empty();
  has_older_ =
      sweep.revision > 1 &&
      db.prepared("SELECT 1 FROM sweep_former WHERE sweep_id = :sweep AND version IS NOT NULL LIMIT 1")
          .bind(":sweep", sweep_)
          .one([](const Statement&) { return true; })
          .has_value();
  table_ = {.sweep = name,
            .baseline = sweep.baseline,
            .paper_heading = sweep.paper_heading,
            .attributes_json = read_attributes(db, sweep.id),
            .columns = read_columns(db, sweep.id),
            .holds = sweep.holds,
            .seeds_rule = sweep.seeds_rule};
  if (sweep.revision > 1)
    table_.seeds_added =
        db.prepared(R"sql(SELECT revision FROM sweep_revision WHERE sweep_id = :sweep AND EXISTS (
                          SELECT 1 FROM json_each(changes) WHERE value GLOB 'seed*: new') ORDER BY revision)sql")
            .bind(":sweep", sweep_)
            .all([](const Statement& row) { return static_cast<std::uint32_t>(row.integer(0)); });
  if (adaptive_)
    table_.seeds = db.prepared("SELECT seed FROM sweep_seed WHERE sweep_id = :sweep ORDER BY position")
                       .bind(":sweep", sweep_)
                       .all([](const Statement& row) { return row.integer(0); });
  for (const Column& column : table_.columns) units_.push_back(column.unit);
  expressions_ = ExpressionColumns{table_.columns};
  table_.rows = read_row_names(db, sweep);
  if (table_.attributes_json.find("\"pivot\"") != std::string::npos)
    place_in_pivot(table_, read_sets(db, sweep_));
  notes_.resize(table_.rows.size());
  for (TableRow& row : table_.rows) row.cells.resize(table_.columns.size());
  for (std::size_t i = 0; i < table_.columns.size(); ++i) {
    if (table_.columns[i].kind == Column::Kind::kSetting) {
      auto cells = setting_cells(db, sweep_, table_.columns[i]);
      for (std::size_t row = 0; row < cells.size(); ++row) table_.rows[row].cells[i] = std::move(cells[row]);
    }
    auto& papers = db.prepared(
        "SELECT row, printed, mark, why FROM sweep_paper WHERE sweep_id = :sweep AND name = :name");
    papers.bind(":sweep", sweep_).bind(":name", table_.columns[i].name);
    while (papers.step()) {
      Cell& cell = table_.rows.at(static_cast<std::size_t>(papers.integer(0))).cells[i];
      cell.paper = papers.text(1);
      if (const auto mark = value_named<protocol::Mark>(papers.text(2)))
        cell.mark = protocol::PaperMark{.mark = *mark, .why = papers.text(3)};
    }
  }
  read_counts(db);
  if (!table_.rows.empty()) read_rows(db, 0, table_.rows.size() - 1);
  evaluate(nullptr);
  finish();
}

KeptTable::~KeptTable() = default;
KeptTable::KeptTable(KeptTable&&) noexcept = default;

void KeptTable::update(Database& db, const std::set<std::size_t>& rows) {
  const Transaction snapshot{db, Transaction::kRead};
  table_.holds = SweepStore{db}.holds(sweep_);
  const auto counts_before = counts_known_;
  read_counts(db);
  for (auto row = rows.begin(); row != rows.end();) {  // neighbours together
    const std::size_t first = *row;
    std::size_t last = first;
    while (++row != rows.end() && *row == last + 1) ++last;
    if (last < table_.rows.size()) read_rows(db, first, last);
  }
  evaluate(counts_known_ == counts_before ? &rows : nullptr);
  finish();
}

/// The cells that are made of others: those of some rows and of rows that are compared with them, or all.
void KeptTable::evaluate(const std::set<std::size_t>* rows) {
  if (!expressions_.any()) return;
  if (baselines_.empty()) {
    std::unordered_map<std::string_view, std::size_t> places;
    for (std::size_t row = 0; row < table_.rows.size(); ++row) places.emplace(table_.rows[row].id, row);
    for (const TableRow& row : table_.rows) {
      const auto place = places.find(row.baseline.empty() ? table_.baseline : row.baseline);
      baselines_.push_back(place == places.end() ? std::nullopt : std::optional{place->second});
    }
  }
  std::set<std::size_t> stale;
  for (std::size_t row = 0; row < table_.rows.size(); ++row)
    if (!rows || rows->contains(row) || (baselines_[row] && rows->contains(*baselines_[row])))
      stale.insert(row);
  expressions_.evaluate(table_, stale, baselines_, units_, seeds_);
}

bool KeptTable::is_counted(Database& db) const { return counts_known_ == counts_known(db); }

/// The counts of architectures, which nothing that happens to a trial changes.
void KeptTable::read_counts(Database& db) {
  if (const auto known = counts_known(db); std::exchange(counts_known_, known) == known) return;
  for (std::size_t i = 0; i < table_.columns.size(); ++i) {
    if (table_.columns[i].kind != Column::Kind::kCount) continue;
    auto cells = count_cells(db, sweep_, table_.columns[i]);
    for (std::size_t row = 0; row < cells.size(); ++row) {
      Cell& cell = table_.rows[row].cells[i];
      cells[row].paper = std::move(cell.paper);
      cells[row].mark = std::move(cell.mark);
      if (!cells[row].mean && table_.rows[row].not_trained)  // no command: a row of which nothing is known
        cells[row].missing = "not counted: its model is not known here";
      cell = std::move(cells[row]);
    }
  }
}

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
    auto& lines = db.prepared(select_trials().c_str());
    for (std::size_t slot = 0; slot < kColumnsAtOnce; ++slot) {
      const bool is_used = slot < count;
      lines.bind(fmt::format(":take{}", slot).c_str(), is_used ? taken[begin + slot].take : "");
      lines.bind(fmt::format(":metric{}", slot).c_str(),
                 is_used ? metric_id(db, taken[begin + slot].source) : std::nullopt);
    }
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
        auto& reason = reasons[place - first];
        if (state == TrialState::kFailed && !has_failed[place - first])
          has_failed[place - first] = true, reason = "failed: " + lines.text(8);
        else if (state == TrialState::kHeld && !reason)
          reason = lines.text(8);
        if (is_completed) note_run(lines, row.id, notes_[place]);
      }
      for (std::size_t slot = 0; slot < count; ++slot) {
        const int value = kFirstValue + kValueColumns * static_cast<int>(slot);
        if (lines.integer(value + 2) == 0) continue;
        Cell& cell = row.cells[taken[begin + slot].column];
        cell.values.push_back({.run = run,
                               .trial = trial,
                               .seed = seed,
                               .value = value_of(lines, value),
                               .not_finite = static_cast<std::uint32_t>(lines.integer(value + 1))});
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

std::optional<std::int64_t> KeptTable::metric_id(Database& db, const std::string& name) {
  return db.prepared("SELECT id FROM metric WHERE name = :name")
      .bind(":name", name)
      .one([](const Statement& row) { return row.integer(0); });
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
    cell.missing = what_is_lacking(db, sweep_, row, table_.columns[column]);
    if (cell.n == 0) cell.text = "missing";
  } else if (cell.n == 0) {
    const TableRow& line = table_.rows[row];
    cell.missing = line.not_trained ? fmt::format("not trained: {}", line.not_trained_why)
                                    : why_no_metric(trials, reason);
  }
  if (cell.n == 0) return;
  std::vector<double> values;
  for (const auto& value : cell.values) values.push_back(value.value);
  const statistics::MeanSd spread = statistics::mean_sd(values);
  cell.mean = spread.mean, cell.sd = spread.sd;
  for (const CellValue& value : cell.values)
    if (value.not_finite > 0)
      notes_[row].diverged.push_back({table_.rows[row].id, value.seed, table_.columns[column].source,
                                      table_.columns[column].take, value.not_finite});
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
             CASE :take WHEN 'last' THEN 0 ELSE CASE WHEN m.finite > 0 THEN m.count - m.finite ELSE 0 END END
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
                               .not_finite = static_cast<std::uint32_t>(line.integer(5))});
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

void KeptTable::keep_curves(std::size_t row) {
  for (const RowNotes::Curve& curve : notes_[row].curves)
    equal_ += ++curves_[key_of(curve.seed, curve.digest)] == 2;
  if (const RowNotes& notes = notes_[row];
      notes.diverged.size() + notes.lost.size() + notes.due.size() + notes.packed.size() > 0)
    noted_.insert(row);
}

void KeptTable::forget_curves(std::size_t row) {
  noted_.erase(row);
  for (const RowNotes::Curve& curve : notes_[row].curves) {
    const auto kept = curves_.find(key_of(curve.seed, curve.digest));
    equal_ -= --kept->second == 1;
    if (kept->second == 0) curves_.erase(kept);
  }
}

/// What is of all rows together: units and texts, and what is to be noted.
void KeptTable::finish() {
  for (std::size_t i = 0; i < table_.columns.size(); ++i) write_column(i);
  table_.diverged.clear();
  table_.lost.clear();
  table_.packed.clear();
  table_.before_mend.clear();
  for (const std::size_t row : noted_) {
    const RowNotes& notes = notes_[row];
    table_.diverged.insert(table_.diverged.end(), notes.diverged.begin(), notes.diverged.end());
    table_.lost.insert(table_.lost.end(), notes.lost.begin(), notes.lost.end());
    table_.packed.insert(table_.packed.end(), notes.packed.begin(), notes.packed.end());
    for (const int due : notes.due) table_.before_mend[due].push_back(table_.rows[row].id);
  }
  table_.equal_rows.clear();
  if (equal_ == 0) return;  // no two trials have equal curves of one seed
  EqualCurves curves;
  for (std::size_t row = 0; row < notes_.size(); ++row) {
    // a row of which no other has a curve is equal to none
    const bool is_candidate = std::ranges::any_of(notes_[row].curves, [&](const RowNotes::Curve& curve) {
      return curves_.at(key_of(curve.seed, curve.digest)) > 1;
    });
    if (!is_candidate) continue;
    for (const RowNotes::Curve& curve : notes_[row].curves)
      curves.add(row, curve.seed, curve.digest, curve.trial);
  }
  for (const auto& group : curves.groups()) {
    auto& ids = table_.equal_rows.emplace_back();
    for (const std::size_t row : group) ids.push_back(table_.rows[row].id);
  }
}

/// The texts of a column's cells, in the unit that fits them all, or the papers' values.
void KeptTable::write_column(std::size_t index) {
  Column& column = table_.columns[index];
  if (column.unit_fits) {
    double largest = 0;
    for (const TableRow& row : table_.rows) {
      const Cell& cell = row.cells[index];
      if (!cell.paper.empty()) largest = std::numeric_limits<double>::infinity();
      largest = std::max(largest, cell.mean.value_or(0));
    }
    const auto fitting = fitting_unit(units_[index], largest);
    if (std::exchange(column.unit, fitting) != fitting)
      for (TableRow& row : table_.rows)
        if (row.cells[index].mean) row.cells[index].text.clear();
  }
  for (TableRow& row : table_.rows)
    if (Cell& cell = row.cells[index]; cell.text.empty())
      cell.text = format_cell(cell.mean, cell.sd, column.digits, column.unit, column.cut);
}

std::size_t KeptTable::bytes() const {
  std::size_t bytes = sizeof *this + curves_.size() * 40;
  for (const TableRow& row : table_.rows)
    bytes += sizeof row + sizeof(RowNotes) + row.cells.size() * (sizeof(Cell) + 32) +
             row.trials.completed * 24 +
             (row.cells.empty() ? 0 : row.trials.completed * row.cells.size() * sizeof(CellValue));
  return bytes;
}

Table read_table(Database& db, const std::string& name) { return KeptTable{db, name}.take(); }

}  // namespace abl::storage
