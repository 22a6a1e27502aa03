// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/nearest_name.h"
#include "protocol/expression.h"
#include "storage/metric_store.h"
#include "storage/sweep_store.h"
#include "storage/table.h"
#include "storage/trial_store.h"
#include "views/comparison.h"
#include "views/config_differences.h"
#include "views/convert.h"
#include "views/packed_table.h"
#include "views/read.h"
#include "views/table_cache.h"
#include "views/table_notes.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::ClaimRecord;
using storage::Database;

/// Throws: Error{kNotFound} naming what there is no such thing of, and the nearest that there is.
template <class Items, class Name>
[[noreturn]] void refuse(const Items& items, const std::string& wanted, const std::string& what,
                         const Name& name_of) {
  std::vector<std::string> names;
  for (const auto& item : items) names.push_back(name_of(item));
  std::string hint = did_you_mean(wanted, names);
  constexpr std::size_t kFew = 20;
  if (hint.empty() && !names.empty() && names.size() <= kFew)
    hint = fmt::format("; expected one of {}", fmt::join(names, ", "));
  throw Error{Code::kNotFound, fmt::format("{} '{}'{}", what, wanted, hint)};
}

struct Place {
  int row = 0, column = 0;
};

/// Where a row stands in a table.
std::optional<int> place_of(Database& db, storage::SweepId sweep, const PackedTable& table,
                            const std::string& id) {
  const auto place = storage::SweepStore{db}.row(sweep, id);
  if (!place || *place < 0 || static_cast<std::uint32_t>(*place) >= table.rows()) return std::nullopt;
  return place;
}

/// The same of a whole table: of one whose file asks for a pivot, or to say what is nearest to a wrong name.
/// Throws: Error{kNotFound}.
Place search_cell(const v1::Table& table, const v1::WhyRequest& request) {
  const auto row_named = [&](const std::string& id) {
    const auto& rows = table.rows();
    return static_cast<int>(std::ranges::find(rows, id, [](const auto& row) { return row.id(); }) -
                            rows.begin());
  };
  const auto column_named = [&](const std::string& name) {
    const auto& columns = table.columns();
    return static_cast<int>(
        std::ranges::find(columns, name, [](const auto& column) { return column.name(); }) - columns.begin());
  };
  Place place{row_named(request.row()), column_named(request.column())};
  const auto bracket = request.column().rfind('[');
  if (place.column == table.columns_size() && table.has_pivot() && bracket != std::string::npos &&
      request.column().ends_with(']')) {
    const std::string level = request.column().substr(bracket + 1, request.column().size() - bracket - 2);
    const std::string line = place.row == table.rows_size() ? request.row() : table.rows(place.row).line();
    for (int i = 0; i < table.rows_size(); ++i)
      if (table.rows(i).line() == line && table.rows(i).level() == level) {
        place = {i, column_named(request.column().substr(0, bracket))};
        break;
      }
  }
  if (place.row == table.rows_size())
    refuse(table.rows(), request.row(), fmt::format("sweep {} has no row", table.sweep()),
           [](const auto& row) { return row.id(); });
  if (place.column == table.columns_size())
    refuse(table.columns(), request.column(), fmt::format("sweep {} has no column", table.sweep()),
           [](const auto& column) { return column.name(); });
  return place;
}

/// Of a cell as the table has it, or as its pivoted form has it: a line, and "acc[8]".
/// Throws: Error{kNotFound}.
Place find_cell(Database& db, storage::SweepId sweep, const PackedTable& table,
                const v1::WhyRequest& request) {
  const auto& columns = table.head().columns();
  const auto column =
      std::ranges::find(columns, request.column(), [](const auto& each) { return each.name(); });
  if (const auto row = place_of(db, sweep, table, request.row()); row && column != columns.end())
    return {*row, static_cast<int>(column - columns.begin())};
  return search_cell(table.part({}), request);
}

/// The claims of one row, by seed.
std::vector<ClaimRecord> claims_of(Database& db, storage::SweepId sweep, const std::string& row) {
  const storage::SweepStore store{db};
  const auto position = store.row(sweep, row);
  if (!position) return {};
  return store.claims(sweep, {.first = static_cast<std::uint32_t>(*position), .count = 1, .values = 0});
}

/// Where in its run a metric had the value that a column takes; 0 of a mean.
std::uint32_t step_of(Database& db, storage::RunId run, const v1::Column& column) {
  for (const auto& summary : storage::MetricStore{db}.summaries(run)) {
    if (summary.name != column.source()) continue;
    if (column.take() == "last") return summary.last_step;
    if (column.take() == "min") return summary.min_step;
    if (column.take() == "max") return summary.max_step;
    if (column.take() == "best") return column.better() == "lower" ? summary.min_step : summary.max_step;
    return 0;
  }
  return 0;
}

/// The values of one cell, a seed each.
void add_values(Database& db, const std::vector<ClaimRecord>& claims, const v1::Column& column,
                const v1::Cell& cell, google::protobuf::RepeatedPtrField<v1::WhyValue>& values) {
  const bool metric = column.kind() == v1::Column::KIND_METRIC;
  for (const ClaimRecord& claim : claims) {
    auto& value = *values.Add();
    value.set_seed(claim.seed);
    value.set_trial(claim.trial);
    value.set_state(to_proto(claim.state));
    const auto used =
        std::ranges::find_if(cell.runs(), [&](const auto& run) { return run.seed() == claim.seed; });
    storage::RunId run = claim.run.value_or(0);
    if (used != cell.runs().end()) {
      run = used->run();  // as the table has it, whatever has begun since
      if (used->trial() != 0 && used->trial() != claim.trial) {  // of an older version of the command
        value.set_trial(used->trial());
        value.set_state(to_proto(storage::TrialState::kCompleted));
      }
      value.set_value(used->value());
      if (metric) value.set_step(step_of(db, run, column));
    } else if (metric) {
      value.set_missing(claim.state == storage::TrialState::kCompleted
                            ? fmt::format("run {} reported no {}", run, column.source())
                        : claim.reason.empty() ? std::string{to_text(claim.state)}
                                               : fmt::format("{}: {}", to_text(claim.state), claim.reason));
    }
    if (run == 0) continue;
    *value.mutable_run() = run_detail(db, run);
    value.mutable_run()->clear_log_tail();
  }
}

/// "rounded to 2 digits after the point, in millions".
std::string digits_text(const v1::Column& column) {
  std::string text = column.has_digits() ? fmt::format("rounded to {} digit{} after the point",
                                                       column.digits(), column.digits() == 1 ? "" : "s")
                                         : "with as many digits as the deviation, or the value, needs";
  if (column.unit() == "M") text += ", in 10^6";
  if (column.unit() == "G") text += ", in 10^9";
  return text;
}

std::string how_text(const v1::Column& column, const v1::Cell& cell) {
  switch (column.kind()) {
    case v1::Column::KIND_METRIC: {
      if (cell.n() == 0) return fmt::format("no trial of the row has a value of {} yet", column.source());
      const std::string taken =
          column.take() == "mean" ? fmt::format("mean over its points of {}", column.source())
          : column.take() == "best"
              ? fmt::format("best ({}) {}", column.better() == "lower" ? "lowest" : "highest",
                            column.source())
              : fmt::format("{} {}", column.take(), column.source());
      if (cell.n() == 1) return fmt::format("{} of one seed, {}", taken, digits_text(column));
      return fmt::format("mean over {} seeds of the {} ± {}, {}", cell.n(), taken,
                         cell.has_sd() ? "sample standard deviation (n − 1)" : "no deviation",
                         digits_text(column));
    }
    case v1::Column::KIND_COUNT:
      if (!cell.has_mean()) return fmt::format("{} of the row's model is not counted yet", column.source());
      return fmt::format("{} of the row's model, counted without training, {}", column.source(),
                         digits_text(column));
    case v1::Column::KIND_SETTING:
      return fmt::format("the row's {}, as the sweep file sets it", column.source());
    case v1::Column::KIND_EXPRESSION:
      if (cell.n() > 1)
        return fmt::format("mean over {} seeds of {} ± {}, {}", cell.n(), column.source(),
                           cell.has_sd() ? "sample standard deviation (n − 1)" : "no deviation",
                           digits_text(column));
      return fmt::format("{}{}, {}", column.source(),
                         column.per_seed() && cell.n() == 1 ? " of one seed" : "", digits_text(column));
    case v1::Column::KIND_PRINTED:
      return "the paper's value alone: nothing is measured in this column";
    default:
      return "as the sweep file says";
  }
}

std::string model_hash(Database& db, storage::SweepId sweep, const std::string& row) {
  return db.prepared("SELECT model_hash FROM sweep_row WHERE sweep_id = :sweep AND id = :row")
      .bind(":sweep", sweep)
      .bind(":row", row)
      .one([](const storage::Statement& line) { return line.text(0); })
      .value_or("");
}

/// What each name of an expression stands for in a row.
void add_parts(Database& db, storage::SweepId sweep, const PackedTable& whole, v1::WhyResponse& message) {
  const v1::Table& table = whole.head();
  using Of = protocol::Expression::Of;
  std::optional<protocol::Expression> expression;
  try {
    expression.emplace(message.column().source());
  } catch (const Error&) {  // of another release: the cell says so
    return;
  }
  for (const auto& name : expression->names()) {
    auto& part = *message.add_parts();
    part.set_name(name.text());
    part.set_column(name.column);
    const std::string row = name.of == Of::kBaseline ? message.baseline() : message.row();
    part.set_row(row);
    const auto column =
        std::ranges::find(table.columns(), name.column, [](const auto& each) { return each.name(); });
    const auto place = place_of(db, sweep, whole, row);
    if (column == table.columns().end() || !place) {
      part.set_how(column == table.columns().end() ? "the table has no such column"
                                                   : "the row has no baseline");
      continue;
    }
    const v1::TableRow line = whole.row(static_cast<std::size_t>(*place));
    const v1::Cell& cell = line.cells(static_cast<int>(column - table.columns().begin()));
    if (name.of == Of::kPaper) {
      part.set_text(cell.paper());
      part.set_how("as the paper prints it");
      continue;
    }
    part.set_text(cell.text());
    part.set_how(how_text(*column, cell));
    part.set_by_seed(name.of == Of::kRow && column->per_seed());
    if (column->per_seed()) add_values(db, claims_of(db, sweep, row), *column, cell, *part.mutable_values());
  }
}

/// Of the notes of the whole table those that are of all of it, and those of one row.
std::vector<std::string> notes_of(const v1::Table& table, const std::vector<std::string>& of_rows,
                                  std::vector<std::string> of_row) {
  std::vector<std::string> notes;
  for (const std::string& note : table.notes())
    if (std::ranges::find(of_rows, note) == of_rows.end()) notes.push_back(note);
  std::ranges::move(of_row, std::back_inserter(notes));
  return notes;
}

/// In a snapshot, of which the table is.
v1::WhyResponse explain(Database& db, const PackedTable& table, const v1::WhyRequest& request) {
  const auto sweep = storage::SweepStore{db}.get_brief(request.sweep());
  const auto [place, column] = find_cell(db, sweep.id, table, request);
  const v1::Table& head = table.head();
  const v1::TableRow row = table.row(static_cast<std::size_t>(place));
  v1::WhyResponse message;
  message.set_sweep(sweep.name);
  message.set_row(row.id());
  message.set_label(row.label());
  *message.mutable_column() = head.columns(column);
  v1::Cell& cell = *message.mutable_cell();
  if (column < row.cells_size()) cell = row.cells(column);
  message.set_baseline(baseline_of(head, row));
  message.set_paper_heading(head.paper_heading());
  for (auto& note : notes_of(head, table_notes(table.noted()), table_notes_of(table.noted(), message.row())))
    message.add_notes(std::move(note));
  const auto claims = claims_of(db, sweep.id, message.row());
  if (message.column().kind() == v1::Column::KIND_EXPRESSION) add_parts(db, sweep.id, table, message);
  add_values(db, claims, message.column(), message.cell(), *message.mutable_values());
  const storage::TrialStore trials{db};
  if (!claims.empty()) message.set_config_json(trials.get(claims.front().trial).config);
  if (const auto other = claims_of(db, sweep.id, message.baseline());
      !claims.empty() && !other.empty() && message.row() != message.baseline())
    for (auto& [key, values] : config_differences(db, claims.front().trial, other.front().trial)) {
      auto& difference = *message.add_differences();
      difference.set_key(key);
      difference.set_value(values.first);
      difference.set_baseline(values.second);
    }
  if (message.column().kind() == v1::Column::KIND_COUNT)
    message.set_counted(model_hash(db, sweep.id, message.row()));
  message.set_how(how_text(message.column(), message.cell()));
  *message.mutable_provenance() = provenance(db, sweep.name).provenance();
  return message;
}

}  // namespace

v1::WhyResponse why(Database& db, const v1::WhyRequest& request) {
  const storage::Transaction snapshot{db, storage::Transaction::kRead};
  storage::Table stored = storage::read_table(db, request.sweep());
  storage::Table noted = views::noted(stored);
  return explain(db, PackedTable{to_proto(std::move(stored)), nullptr, std::move(noted)}, request);
}

v1::WhyResponse why(Database& db, TableCache& tables, const v1::WhyRequest& request) {
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) {
    const std::int64_t before = db.data_version();
    const auto table = tables.table(db, request.sweep(), true);
    const storage::Transaction snapshot{db, storage::Transaction::kRead};
    // what the cell is made of is read from the state of the store that the table is of
    if (db.data_version() == before) return explain(db, *table, request);
  }
  return why(db, request);
}

extern const Read kWhyRead{
    .path = "sweeps/*/why",
    .of = &kSweepOfPath,
    .about = "How a cell of the table was computed: runs, values, settings, provenance",
    .parameters = {{.name = "row", .about = "The row's id", .needed = true},
                   {.name = "column", .about = "The column's name", .needed = true}},
    .message = v1::WhyResponse::descriptor,
    .answer =
        [](const Query& query, const Stored& stored) {
          v1::WhyRequest request;
          request.set_sweep(query.name);
          request.set_row(query.text("row"));
          request.set_column(query.text("column"));
          return to_json(why(stored.db, stored.tables, request));
        },
};

}  // namespace abl::views
