// SPDX-License-Identifier: Apache-2.0
#include "views/compared_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "protocol/number.h"
#include "statistics/mean_sd.h"
#include "storage/table.h"

namespace abl::views {

namespace v1 = ablate::v1;
using protocol::Better;
using protocol::Take;
using storage::Database;
using storage::Statement;

double ComparedValue::taken(Take take, Better better) const {
  switch (take) {
    case Take::kLast:
      return last;
    case Take::kBest:
      return better == Better::kLower ? min : max;
    case Take::kMin:
      return min;
    case Take::kMax:
      return max;
    case Take::kMean:
      return mean;
  }
  return last;
}

std::vector<ComparedValue> values_of(Database& db, const ComparedSide& side, int row, std::int64_t metric) {
  constexpr const char* kOfRow = R"sql(
      SELECT st.seed, t.id, ms.run_id, ms.last, ms.last_kind, ms.min, ms.max, ms.sum / ms.finite, ms.count, ms.finite, ms.last_step
      FROM sweep_trial st JOIN trial t ON t.id = st.trial_id AND t.state = 'completed'
      JOIN metric_summary ms ON ms.run_id = t.run_id AND ms.metric_id = :metric
      WHERE st.sweep_id = :sweep AND st.row = :row ORDER BY st.seed_index)sql";
  constexpr const char* kOfRun = R"sql(
      SELECT t.seed, t.id, ms.run_id, ms.last, ms.last_kind, ms.min, ms.max, ms.sum / ms.finite, ms.count, ms.finite, ms.last_step
      FROM metric_summary ms JOIN run r ON r.id = ms.run_id JOIN trial t ON t.id = r.trial_id
      WHERE ms.run_id = :run AND ms.metric_id = :metric)sql";
  Statement& lines = db.prepared(side.run ? kOfRun : kOfRow);
  if (side.run)
    lines.bind(":run", *side.run);
  else
    lines.bind(":sweep", side.sweep->id).bind(":row", row);
  const auto real = [](const Statement& line, int place) {
    return line.is_null(place) ? std::numeric_limits<double>::quiet_NaN() : line.real(place);
  };
  return lines.bind(":metric", metric).all([&](const Statement& line) {
    return ComparedValue{.seed = side.run ? side.said.seed() : line.integer(0),
                         .trial = static_cast<storage::TrialId>(line.integer(1)),
                         .run = static_cast<storage::RunId>(line.integer(2)),
                         .last = line.is_null(3)
                                     ? protocol::non_finite_value(line.text(4)).value_or(std::nan(""))
                                     : line.real(3),
                         .min = real(line, 5),
                         .max = real(line, 6),
                         .mean = real(line, 7),
                         .count = static_cast<std::uint32_t>(line.integer(8)),
                         .finite = static_cast<std::uint32_t>(line.integer(9)),
                         .last_step = static_cast<std::uint32_t>(line.integer(10))};
  });
}

std::optional<std::int64_t> metric_id(Database& db, const std::string& name) {
  return db.prepared("SELECT id FROM metric WHERE name = :name")
      .bind(":name", name)
      .one([](const Statement& line) { return line.integer(0); });
}

std::set<std::string> metrics_of(Database& db, const ComparedSide& side) {
  constexpr const char* kOfRow = R"sql(
      SELECT DISTINCT m.name FROM sweep_trial st JOIN trial t ON t.id = st.trial_id AND t.state = 'completed'
      JOIN metric_summary ms ON ms.run_id = t.run_id JOIN metric m ON m.id = ms.metric_id
      WHERE st.sweep_id = :sweep AND st.row = :row)sql";
  constexpr const char* kOfRun =
      "SELECT m.name FROM metric_summary ms JOIN metric m ON m.id = ms.metric_id WHERE ms.run_id = :run";
  Statement& lines = db.prepared(side.run ? kOfRun : kOfRow);
  if (side.run)
    lines.bind(":run", *side.run);
  else
    lines.bind(":sweep", side.sweep->id).bind(":row", *side.row);
  std::set<std::string> names;
  for (auto& name : lines.all([](const Statement& line) { return line.text(0); }))
    names.insert(std::move(name));
  return names;
}

namespace {

/// Why a side has no value of a metric.
std::string why_missing(const ComparedSide& side, const std::string& metric, std::uint32_t trials,
                        std::uint32_t completed) {
  if (side.run) return fmt::format("run {} reported no {}: it is {}", *side.run, metric, side.said.state());
  if (completed > 0) return fmt::format("no run reported {}", metric);
  return trials == 1 ? "its trial has not completed" : fmt::format("no trial of {} has completed", trials);
}

}  // namespace

v1::Cell cell_of(const std::vector<ComparedValue>& values, const storage::Column& column,
                 const ComparedSide& side, std::uint32_t trials, std::uint32_t completed) {
  v1::Cell cell;
  cell.set_of(trials);
  cell.set_n(static_cast<std::uint32_t>(values.size()));
  std::vector<double> taken;
  for (const ComparedValue& value : values) {
    auto& run = *cell.add_runs();
    run.set_run(value.run);
    run.set_trial(value.trial);
    run.set_seed(value.seed);
    run.set_value(value.taken(column.take, column.better));
    run.set_not_finite(column.take == Take::kLast ? 0 : value.count - value.finite);
    taken.push_back(run.value());
    if (!std::isfinite(value.last) || !std::isfinite(run.value())) cell.add_diverged(value.seed);
  }
  if (values.empty()) {
    cell.set_missing(why_missing(side, column.source, trials, completed));
    cell.set_text("–");
  } else if (cell.diverged_size() > 0) {
    cell.set_missing(fmt::format("seed{} {} diverged", cell.diverged_size() == 1 ? "" : "s",
                                 fmt::join(cell.diverged(), ", ")));
    cell.set_text(fmt::format("{}/{} diverged", cell.diverged_size(), values.size()));
  } else {
    const statistics::MeanSd spread = statistics::mean_sd(taken);
    cell.set_mean(spread.mean);
    if (spread.sd) cell.set_sd(*spread.sd);
    cell.set_text(storage::format_cell(spread.mean, spread.sd, column.digits, column.unit, column.cut));
  }
  return cell;
}

std::string UnequalSteps::LastSteps::text() const {
  return first == last ? fmt::format("{}", last) : fmt::format("{} to {}", first, last);
}

UnequalSteps::LastSteps UnequalSteps::steps_of(const std::vector<ComparedValue>& values) {
  const auto [least, most] = std::ranges::minmax_element(values, {}, &ComparedValue::last_step);
  return {.first = least->last_step, .last = most->last_step};
}

void UnequalSteps::add(const std::string& what, const storage::Column& column,
                       const std::vector<ComparedValue>& a, const std::vector<ComparedValue>& b) {
  if (column.take != Take::kLast || a.empty() || b.empty()) return;
  const LastSteps ours = steps_of(a), theirs = steps_of(b);
  if (ours != theirs) by_steps_[{ours, theirs}].push_back(what);
}

void UnequalSteps::add_notes(v1::CompareResponse& message) const {
  constexpr std::size_t kNotes = 5, kNamed = 3;
  std::size_t said = 0;
  for (const auto& [steps, what] : by_steps_) {
    if (said++ == kNotes) break;
    const auto few = static_cast<std::ptrdiff_t>(std::min(what.size(), kNamed));
    const std::vector<std::string> named(what.begin(), what.begin() + few);
    message.add_notes(
        fmt::format("last values are from different steps, A at {} and B at {}: {}{}", steps.first.text(),
                    steps.second.text(), fmt::join(named, ", "),
                    what.size() > kNamed ? fmt::format(" and {} more", what.size() - kNamed) : ""));
  }
  if (const std::size_t more = by_steps_.size() - std::min(by_steps_.size(), kNotes); more > 0)
    message.add_notes(fmt::format("and from {} more pair{} of different steps", more, more == 1 ? "" : "s"));
}

}  // namespace abl::views
