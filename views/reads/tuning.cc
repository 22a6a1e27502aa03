// SPDX-License-Identifier: Apache-2.0
#include "views/tuning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "protocol/column.h"
#include "statistics/mean_sd.h"
#include "storage/sweep_store.h"
#include "storage/table.h"
#include "views/convert.h"
#include "views/read.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using nlohmann::json;
using Values = std::map<std::string, std::string>;

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// "10 % of the training images"
std::string held_out_text(const std::string& held_out) {
  const double part = std::strtod(held_out.c_str(), nullptr);
  return part > 0 && part < 1 ? fmt::format("{:.4g} % of the training images", 100 * part)
                              : fmt::format("{} of the training images", held_out);
}

std::string legend_of(const v1::TuningResponse& tuning, const json& tune) {
  std::vector<std::string> ranges;
  for (const auto& range : tuning.ranges()) ranges.push_back(range.text());
  std::string text = fmt::format("{}{} points ({}) of {}", tuning.search() ? "" : "each row at the best of ",
                                 tuning.budget(), tuning.method(), fmt::join(ranges, ", "));
  if (!tuning.rung_key().empty())
    text += fmt::format(", the better ones again with more {}", tuning.rung_key());
  text += fmt::format("; by {}{}", tuning.metric(),
                      tuning.better().empty() ? "" : fmt::format(" ({} is better)", tuning.better()));
  if (!tuning.held_out().empty()) text += fmt::format(" on {}, held out", held_out_text(tuning.held_out()));
  if (const auto told = tune.find("told"); told != tune.end() && told->is_object() && !told->empty()) {
    std::vector<std::string> all;
    for (const auto& [key, value] : told->items())
      all.push_back(fmt::format("{} {}", key, value.is_string() ? value.get<std::string>() : value.dump()));
    text += fmt::format(" with {}", fmt::join(all, ", "));
  }
  return text +
         fmt::format("; seed{} {}", tuning.seeds_size() == 1 ? "" : "s", fmt::join(tuning.seeds(), ", "));
}

std::string values_text(const Values& values) {
  std::vector<std::string> all;
  for (const auto& [key, value] : values) all.push_back(fmt::format("{} {}", key, value));
  return fmt::format("{}", fmt::join(all, ", "));
}

std::string points_text(int points) { return points == 1 ? "1 point" : fmt::format("{} points", points); }

struct Means {
  std::vector<double> all;     // of the points with all epochs, the best first
  std::optional<double> sd{};  // of the best, over its seeds
};

/// The better half is as good as what half of the points would have found at the worst.
void set_spread(const Means& means, v1::TuningSpread& spread) {
  spread.set_points(static_cast<std::uint32_t>(means.all.size()));
  if (means.all.size() < 2) return;
  spread.set_best(means.all.front());
  spread.set_half(means.all[(means.all.size() - 1) / 2]);
  spread.set_worst(means.all.back());
  if (means.sd) spread.set_seeds_sd(*means.sd);
}

/// Keys whose best value is the smallest or the largest that was tried: beyond it may be a better one. What
/// diverged or failed was tried too.
void warn_of_edges(const v1::TuningResponse& tuning, const v1::TuningPoint& best, v1::TuningRow& row) {
  constexpr std::size_t kFewest = 3;  // of two, each is at an end
  for (const auto& range : tuning.ranges()) {
    if (!range.has_min()) continue;
    std::set<double> tried;
    for (const auto& point : row.points())
      if (point.n() + point.trials().completed() + point.trials().failed() > 0 &&
          point.values().contains(range.key()))
        tried.insert(std::strtod(point.values().at(range.key()).c_str(), nullptr));
    if (tried.size() < kFewest || !best.values().contains(range.key())) continue;
    const std::string& text = best.values().at(range.key());
    const double value = std::strtod(text.c_str(), nullptr);
    const bool smallest = value <= *tried.begin(), largest = value >= *tried.rbegin();
    if (smallest || largest)
      row.add_warnings(
          fmt::format("its {} {} is the {} that was tried: a range that goes on to {} values may have a "
                      "better one",
                      range.key(), text, smallest ? "smallest" : "largest", smallest ? "smaller" : "larger"));
  }
}

v1::TuningPoint message_of(const storage::TunedPoint& point, const v1::TuningResponse& tuning) {
  v1::TuningPoint message;
  message.set_point(static_cast<std::uint32_t>(point.point));
  message.set_rung(static_cast<std::uint32_t>(point.rung));
  message.set_tuning_row(point.tuning_row);
  message.set_rung_value(point.rung_value);
  message.set_best(point.best);
  for (const auto& [key, value] : point.values) (*message.mutable_values())[key] = value;
  std::vector<double> values;
  for (std::size_t i = 0; i < point.values_by_seed.size(); ++i) {
    auto& value = *message.add_values_by_seed();
    if (static_cast<int>(i) < tuning.seeds_size()) value.set_seed(tuning.seeds(static_cast<int>(i)));
    if (!point.values_by_seed[i]) continue;
    value.set_value(*point.values_by_seed[i]);
    values.push_back(*point.values_by_seed[i]);
  }
  message.set_n(static_cast<std::uint32_t>(values.size()));
  *message.mutable_trials() = to_proto(point.trials);
  const auto wanted = static_cast<std::size_t>(std::max(1, tuning.seeds_size()));
  if (values.size() == wanted) {
    const auto [mean, sd] = statistics::mean_sd(values);
    message.set_mean(mean);
    if (sd) message.set_sd(*sd);
    message.set_text(storage::format_cell(mean, sd, std::nullopt, std::nullopt));
  } else {
    message.set_text(!point.trouble.empty()       ? point.trouble
                     : point.trials.total() == 0  ? "–"
                     : point.trials.running > 0   ? "running"
                     : point.trials.open() > 0    ? "waiting"
                     : point.trials.held > 0      ? "held"
                     : point.trials.cancelled > 0 ? "cancelled"
                                                  : "–");
  }
  return message;
}

v1::TuningRow message_of(const storage::RowTuning& tuned, const v1::TuningResponse& tuning) {
  v1::TuningRow row;
  row.set_row(tuned.row);
  row.set_label(tuned.label);
  int last = 0;
  for (const auto& point : tuned.points) {
    last = std::max(last, point.rung);
    *row.add_points() = message_of(point, tuning);
  }
  Means means;
  std::map<std::uint32_t, bool> complete;  // point -> a value wherever it was tried
  for (int i = 0; i < row.points_size(); ++i) {
    const auto& point = row.points(i);
    const bool tried = point.rung() == 0 || point.trials().total() > 0;
    if (tried) complete.try_emplace(point.point(), true).first->second &= point.has_mean();
    if (point.best()) {
      row.set_best(static_cast<std::uint32_t>(i));
      if (point.has_sd()) means.sd = point.sd();
    }
    if (static_cast<int>(point.rung()) == last && point.has_mean()) means.all.push_back(point.mean());
  }
  std::ranges::sort(means.all);
  if (tuning.better() == name_of(protocol::Better::kHigher)) std::ranges::reverse(means.all);
  set_spread(means, *row.mutable_spread());
  const auto done = std::ranges::count_if(complete, [](const auto& point) { return point.second; });
  row.set_completed(static_cast<std::uint32_t>(done));
  if (tuned.choice)
    row.set_note(tuned_text(*tuned.choice));
  else
    row.set_note(fmt::format("{} of {} have a value", done, points_text(static_cast<int>(tuning.budget()))));
  if (tuned.choice && tuned.choice->point && tuned.choice->completed < tuned.choice->budget)
    row.add_warnings(fmt::format("{} of {} have a value{}", tuned.choice->completed,
                                 points_text(tuned.choice->budget),
                                 tuning.search() ? "" : ": it is tuned less than rows that have all"));
  if (row.has_best()) warn_of_edges(tuning, row.points(static_cast<int>(row.best())), row);
  return row;
}

}  // namespace

v1::TuningResponse tuning_head(const std::string& tune_json, std::size_t points) {
  v1::TuningResponse tuning;
  const json tune = json::parse(tune_json, nullptr, false);
  if (!tune.is_object()) return tuning;
  for (const auto& stored : tune.value("ranges", json::array())) {
    auto& range = *tuning.add_ranges();
    range.set_key(text_at(stored, "key"));
    range.set_text(text_at(stored, "text"));
    for (const auto& choice : stored.value("choices", json::array()))
      if (choice.is_string()) range.add_choices(choice.get<std::string>());
    if (range.choices().empty() && stored.contains("min") && stored.contains("max")) {
      range.set_min(stored["min"].get<double>());
      range.set_max(stored["max"].get<double>());
      range.set_log(stored.value("log", false));
    }
  }
  tuning.set_method(text_at(tune, "method"));
  const auto asked = tune.value("budget", 0U);
  tuning.set_budget(points > 0 ? std::min(asked, static_cast<std::uint32_t>(points)) : asked);
  tuning.set_metric(text_at(tune, "metric"));
  tuning.set_better(text_at(tune, "better"));
  for (const auto& seed : tune.value("seeds", json::array())) tuning.add_seeds(seed.get<std::int64_t>());
  tuning.set_held_out(text_at(tune, "held_out"));
  tuning.set_search(tune.value("search", false));
  if (tuning.method() == "halving")
    tuning.set_rung_key(text_at(tune.value("halving", json::object()), "key"));
  tuning.set_legend(legend_of(tuning, tune));
  return tuning;
}

std::string tuned_text(const storage::TuningChoice& choice) {
  if (!choice.point) return choice.why.empty() ? "not tuned: no point has a value" : choice.why;
  return fmt::format("{}, the best of {}", values_text(choice.values), points_text(choice.completed));
}

std::vector<std::string> tuning_notes(const std::string& tune_json,
                                      const std::vector<storage::TuningChoice>& choices) {
  if (choices.empty()) return {};
  const v1::TuningResponse tuning =
      tuning_head(tune_json, static_cast<std::size_t>(std::max(0, choices.front().budget)));
  std::vector<std::string> all, notes;
  for (const auto& choice : choices)
    if (choice.point) all.push_back(fmt::format("{} {}", choice.row, values_text(choice.values)));
  if (tuning.search())
    return {fmt::format("a search of {}: {}", tuning.legend(),
                        choices.front().point ? "the best is " + values_text(choices.front().values)
                                              : tuned_text(choices.front()))};
  notes.push_back(
      fmt::format("tuned: {}{}{}", tuning.legend(), all.empty() ? "" : ": ", fmt::join(all, "; ")));
  for (const auto& choice : choices) {
    if (!choice.point)
      notes.push_back(fmt::format("row {}: {}", choice.row, tuned_text(choice)));
    else if (choice.completed < choice.budget)
      notes.push_back(fmt::format("row {} is tuned less than others: {} of its {} have a value", choice.row,
                                  choice.completed, points_text(choice.budget)));
  }
  return notes;
}

void keep_points(v1::TuningResponse& tuning, const Page& page) {
  std::uint64_t before = 0, kept = 0;  // points of the rows before; points that stay
  const std::uint64_t end = std::uint64_t{page.first} + page.count;
  auto& rows = *tuning.mutable_rows();
  for (v1::TuningRow& row : rows) {
    auto& points = *row.mutable_points();
    const auto here = static_cast<std::uint64_t>(points.size());
    const auto from = std::clamp<std::uint64_t>(page.first, before, before + here) - before;
    const auto to = std::clamp<std::uint64_t>(end, before, before + here) - before;
    before += here;
    kept += to - from;
    row.set_first(static_cast<std::uint32_t>(from));
    points.DeleteSubrange(static_cast<int>(to), static_cast<int>(here - to));
    points.DeleteSubrange(0, static_cast<int>(from));
  }
  if (kept == before) return;
  rows.erase(std::remove_if(rows.begin(), rows.end(), [](const auto& row) { return row.points().empty(); }),
             rows.end());
  tuning.set_left_out(static_cast<std::uint32_t>(before - kept));
  if (end < before) tuning.set_next(static_cast<std::uint32_t>(end));
}

void append_points(v1::TuningResponse& page, v1::TuningResponse& all) {
  for (v1::TuningRow& row : *page.mutable_rows()) {
    v1::TuningRow* last = all.rows().empty() ? nullptr : all.mutable_rows(all.rows_size() - 1);
    if (!last || last->row() != row.row())
      *all.add_rows() = std::move(row);
    else
      for (v1::TuningPoint& point : *row.mutable_points()) *last->add_points() = std::move(point);
  }
  all.set_next(page.next());
  all.set_left_out(page.next() == 0 ? 0 : all.left_out());
}

v1::TuningResponse tuning(storage::Database& db, const std::string& sweep, const Page& page) {
  const storage::Transaction snapshot{db, storage::Transaction::kRead};
  const auto stored = storage::TuningStore{db}.read(storage::SweepStore{db}.get_brief(sweep).id);
  if (!stored)
    throw Error{Code::kFailedPrecondition,
                fmt::format("{} is not tuned: its file has neither tune nor search", sweep)};
  std::set<int> points;
  if (!stored->rows.empty())
    for (const auto& point : stored->rows.front().points) points.insert(point.point);
  v1::TuningResponse message = tuning_head(stored->tune_json, points.size());
  message.set_sweep(sweep);
  message.set_tuned_by(stored->by_name);
  for (const auto& row : stored->rows) *message.add_rows() = message_of(row, message);
  keep_points(message, page);
  return message;
}

extern const Read kTuningRead{
    .path = "sweeps/*/tuning",
    .of = &kSweepOfPath,
    .about = "The points of a sweep with `tune` or `search`, each with its values, mean and trials",
    .parameters = {{.name = "first",
                    .about = "First point to return, counted over all rows; to continue, `next` of the last "
                             "answer",
                    .number = Range{.otherwise = 0}},
                   {.name = "count",
                    .about = "Points to return at most",
                    .number = Range{.highest = kMostTuningPoints, .otherwise = kMostTuningPoints}}},
    .message = v1::TuningResponse::descriptor,
    .answer = [](const Query& query,
                 const Stored& stored) { return to_json(tuning(stored.db, query.name, query.page())); },
};

}  // namespace abl::views
