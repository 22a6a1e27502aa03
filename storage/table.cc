// SPDX-License-Identifier: Apache-2.0
#include "storage/table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "protocol/metrics.h"
#include "storage/curves.h"
#include "storage/stored_word.h"
#include "storage/sweep_store.h"

namespace abl::storage {

using protocol::Better;
using protocol::Take;
using protocol::Unit;

namespace {

/// What each row sets, as JSON.
std::vector<std::string> read_sets(Database& db, SweepId sweep) {
  return db
      .prepared(
          "SELECT set_json FROM sweep_row WHERE sweep_id = :sweep AND other_sweep = '' ORDER BY position")
      .bind(":sweep", sweep)
      .all([](const Statement& row) { return row.text(0); });
}

/// Rows as submitted, without cells. `table`: has its attributes.
void read_row_names(Database& db, const SweepRecord& sweep, Table& table) {
  table.rows =
      db.prepared(
            "SELECT id, label, heading, baseline, not_trained, not_trained_why FROM sweep_row WHERE sweep_id "
            "= "
            ":sweep AND other_sweep = '' ORDER BY position")
          .bind(":sweep", sweep.id)
          .all([&](const Statement& s) {
            TableRow row{.id = s.text(0), .label = s.text(1), .group = s.text(2), .baseline = s.text(3)};
            if (row.baseline.empty()) row.baseline = sweep.baseline;
            row.not_trained = value_named<protocol::NotTrained>(s.text(4));
            row.not_trained_why = s.text(5);
            return row;
          });
  if (table.attributes_json.find("\"pivot\"") != std::string::npos)
    place_in_pivot(table, read_sets(db, sweep.id));
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

std::vector<Cell> count_cells(Database& db, SweepId sweep, const Column& column) {
  return db
      .prepared(R"sql(
      SELECT model_hash = '', (SELECT value FROM model_count mc
                               WHERE mc.model_hash = r.model_hash AND mode = :mode ORDER BY version DESC LIMIT 1)
      FROM sweep_row r WHERE sweep_id = :sweep AND other_sweep = '' ORDER BY position)sql")
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
          "SELECT set_json ->> ('$.\"' || :key || '\"') FROM sweep_row WHERE sweep_id = :sweep AND "
          "other_sweep = '' ORDER BY "
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

/// What was chosen for rows: how often, and the time of the last.
std::pair<std::int64_t, std::int64_t> choices_known(Database& db, SweepId sweep) {
  return db.prepared("SELECT COUNT(*), COALESCE(MAX(time_ms), 0) FROM tuning_choice WHERE sweep_id = :sweep")
      .bind(":sweep", sweep)
      .one([](const Statement& row) {
        return std::pair{row.integer(0), row.integer(1)};
      })
      .value();
}

/// A seed's curves in 64 bits.
std::uint64_t key_of(std::int64_t seed, std::int64_t digest) {
  return static_cast<std::uint64_t>(digest) ^ (static_cast<std::uint64_t>(seed) * 0x9e3779b97f4a7c15);
}

}  // namespace

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
  read_row_names(db, sweep, table_);
  choices_known_ = choices_known(db, sweep_);
  if (TuningStore tuning{db}; tuning.tuning_of(sweep_)) {
    table_.tune_json = tuning.tune_json(sweep_);
    std::map<std::string, TuningChoice> choices;
    for (TuningChoice& choice : tuning.choices(sweep_)) choices.emplace(choice.row, std::move(choice));
    for (const TableRow& row : table_.rows)
      if (const auto choice = choices.find(row.id); choice != choices.end())
        table_.tuned.push_back(std::move(choice->second));
  }
  if (adaptive_)
    for (const auto position :
         db.prepared("SELECT position FROM sweep_growth WHERE sweep_id = :sweep AND planned = 1")
             .bind(":sweep", sweep_)
             .all([](const Statement& row) { return static_cast<std::size_t>(row.integer(0)); }))
      if (position < table_.rows.size()) table_.rows[position].planned = true;
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
    if (first >= table_.rows.size()) break;  // rows of other sweeps, behind the table's own
    read_rows(db, first, std::min(last, table_.rows.size() - 1));
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
      const auto place = places.find(row.baseline);
      baselines_.push_back(place == places.end() ? std::nullopt : std::optional{place->second});
    }
  }
  std::set<std::size_t> stale;
  for (std::size_t row = 0; row < table_.rows.size(); ++row)
    if (!rows || rows->contains(row) || (baselines_[row] && rows->contains(*baselines_[row])))
      stale.insert(row);
  expressions_.evaluate(table_, stale, baselines_, units_, seeds_);
}

bool KeptTable::is_tuned(Database& db) const { return choices_known_ == choices_known(db, sweep_); }

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
    if (Cell& cell = row.cells[index]; cell.text.empty()) {
      const bool is_whole = column.kind == Column::Kind::kCount && !column.unit && cell.mean &&
                            *cell.mean == std::floor(*cell.mean);
      cell.text = format_cell(cell.mean, cell.sd, is_whole ? std::optional{0} : column.digits, column.unit,
                              column.cut);
    }
}

std::size_t KeptTable::bytes() const {
  std::size_t bytes = sizeof *this + curves_.size() * 40;
  for (const TableRow& row : table_.rows)
    bytes += sizeof row + sizeof(RowNotes) + row.cells.size() * (sizeof(Cell) + 32) +
             row.trials.completed * 24 +
             (row.cells.empty() ? 0 : row.trials.completed * row.cells.size() * sizeof(CellValue));
  return bytes;
}

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

std::vector<std::string> baselines_of(Database& db, const std::string& sweep) {
  const SweepRecord record = SweepStore{db}.get_brief(sweep);
  Table table{.baseline = record.baseline, .attributes_json = read_attributes(db, record.id)};
  read_row_names(db, record, table);
  std::vector<std::string> baselines;
  for (TableRow& row : table.rows) baselines.push_back(std::move(row.baseline));
  return baselines;
}

Table read_table(Database& db, const std::string& name) { return KeptTable{db, name}.take(); }

}  // namespace abl::storage
