// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/nearest_name.h"
#include "storage/metric_store.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"
#include "views/convert.h"
#include "views/read.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using nlohmann::json;
using storage::ClaimRecord;
using storage::Database;

/// Throws: Error{kNotFound} naming what there is no such thing of, and the nearest that there is.
template <class Items, class Name>
int find_named(const Items& items, const std::string& wanted, const std::string& what, const Name& name_of) {
  std::vector<std::string> names;
  for (int i = 0; i < items.size(); ++i) {
    if (name_of(items[i]) == wanted) return i;
    names.push_back(name_of(items[i]));
  }
  std::string hint = did_you_mean(wanted, names);
  constexpr std::size_t kFew = 20;
  if (hint.empty() && !names.empty() && names.size() <= kFew)
    hint = fmt::format("; expected one of {}", fmt::join(names, ", "));
  throw Error{Code::kNotFound, fmt::format("{} '{}'{}", what, wanted, hint)};
}

/// "model.attention.share" -> "\"QQQQQ\"": every leaf, and lists and mappings that are empty.
std::map<std::string, std::string> leaves(const std::string& document) {
  std::map<std::string, std::string> found;
  const json parsed = json::parse(document, nullptr, false);
  if (!parsed.is_structured()) return found;
  const json flat = parsed.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    std::string key = pointer.empty() ? pointer : pointer.substr(1);
    std::ranges::replace(key, '/', '.');
    if (key != "seed") found[key] = value.dump(-1, ' ', false, json::error_handler_t::replace);
  }
  return found;
}

void add_differences(const std::string& document, const std::string& baseline, v1::WhyResponse& message) {
  const auto here = leaves(document), there = leaves(baseline);
  std::map<std::string, std::pair<std::string, std::string>> both;
  for (const auto& [key, value] : here) both[key].first = value;
  for (const auto& [key, value] : there) both[key].second = value;
  for (const auto& [key, values] : both) {
    if (values.first == values.second) continue;
    auto& difference = *message.add_differences();
    difference.set_key(key);
    difference.set_value(values.first);
    difference.set_baseline(values.second);
  }
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

void add_values(Database& db, const std::vector<ClaimRecord>& claims, v1::WhyResponse& message) {
  const bool metric = message.column().kind() == v1::Column::KIND_METRIC;
  for (const ClaimRecord& claim : claims) {
    auto& value = *message.add_values();
    value.set_seed(claim.seed);
    value.set_trial(claim.trial);
    value.set_state(to_proto(claim.state));
    const auto used = std::ranges::find_if(message.cell().runs(),
                                           [&](const auto& run) { return run.seed() == claim.seed; });
    storage::RunId run = claim.run.value_or(0);
    if (used != message.cell().runs().end()) {
      run = used->run();  // as the table has it, whatever has begun since
      value.set_value(used->value());
      value.set_step(step_of(db, run, message.column()));
    } else if (metric) {
      value.set_missing(claim.state == storage::TrialState::kCompleted
                            ? fmt::format("run {} reported no {}", run, message.column().source())
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

std::string how_text(const v1::WhyResponse& why) {
  const v1::Column& column = why.column();
  const v1::Cell& cell = why.cell();
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
    default:
      return column.source().empty() ? "as the sweep file says" : "computed: " + column.source();
  }
}

std::string model_hash(Database& db, storage::SweepId sweep, const std::string& row) {
  return db.prepared("SELECT model_hash FROM sweep_row WHERE sweep_id = :sweep AND id = :row")
      .bind(":sweep", sweep)
      .bind(":row", row)
      .one([](const storage::Statement& line) { return line.text(0); })
      .value_or("");
}

}  // namespace

v1::WhyResponse why(Database& db, const v1::WhyRequest& request) {
  const storage::Transaction snapshot{db, storage::Transaction::kRead};
  const auto sweep = storage::SweepStore{db}.get_brief(request.sweep());
  const v1::Table whole = table(db, sweep.name);
  const int row = find_named(whole.rows(), request.row(), fmt::format("sweep {} has no row", sweep.name),
                             [](const auto& each) { return each.id(); });
  const int column =
      find_named(whole.columns(), request.column(), fmt::format("sweep {} has no column", sweep.name),
                 [](const auto& each) { return each.name(); });
  v1::WhyResponse message;
  message.set_sweep(sweep.name);
  message.set_row(whole.rows(row).id());
  message.set_label(whole.rows(row).label());
  *message.mutable_column() = whole.columns(column);
  if (column < whole.rows(row).cells_size()) *message.mutable_cell() = whole.rows(row).cells(column);
  message.set_baseline(whole.baseline());
  message.set_paper_heading(whole.paper_heading());
  *message.mutable_notes() = whole.notes();
  const auto claims = claims_of(db, sweep.id, message.row());
  add_values(db, claims, message);
  const storage::TrialStore trials{db};
  if (!claims.empty()) message.set_config_json(trials.get(claims.front().trial).config);
  if (const auto other = claims_of(db, sweep.id, whole.baseline());
      !claims.empty() && !other.empty() && message.row() != whole.baseline())
    add_differences(message.config_json(), trials.get(other.front().trial).config, message);
  if (message.column().kind() == v1::Column::KIND_COUNT)
    message.set_counted(model_hash(db, sweep.id, message.row()));
  message.set_how(how_text(message));
  *message.mutable_provenance() = provenance(db, sweep.name).provenance();
  return message;
}

extern const Read kWhyRead{
    .path = "sweeps/*/why",
    .parameters = {"row", "column"},
    .answer =
        [](const Query& query, const Stored& stored) {
          v1::WhyRequest request;
          request.set_sweep(query.name);
          request.set_row(query.value("row").value_or(""));
          request.set_column(query.value("column").value_or(""));
          return to_json(why(stored.db, request));
        },
};

}  // namespace abl::views
