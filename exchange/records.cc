// SPDX-License-Identifier: Apache-2.0
#include "exchange/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/nearest_name.h"
#include "base/utf8.h"
#include "protocol/number.h"

namespace abl::exchange {
namespace {

using protocol::plain_number;

constexpr std::size_t kMostColumns = 100'000;
constexpr std::size_t kLongestName = 1000;
constexpr std::size_t kShown = 60;

using Names = std::array<std::string_view, 6>;
// what tools call them; the first that is there counts
constexpr Names kRows{"row", "run_name", "run", "name", "Name", "experiment"};
constexpr Names kSeeds{"seed", "params.seed", "config.seed", "Seed", "random_seed", ""};
constexpr Names kSteps{"step", "_step", "Step", "global_step", "epoch", "Epoch"};
constexpr Names kTimes{"time_ms", "_timestamp", "timestamp", "Timestamp", "wall_time", "Wall time"};

bool is_one_of(std::string_view name, const Names& names) {
  return std::ranges::find(names, name) != names.end();
}

/// Columns of tools that say nothing of a model: W&B's bookkeeping, and what `ablate export` says of runs.
bool is_bookkeeping(std::string_view name) {
  constexpr std::array<std::string_view, 10> kNames{"trial", "run",  "event",   "State", "Notes",
                                                    "User",  "Tags", "Created", "Sweep", "Runtime"};
  return name.starts_with('_') || std::ranges::find(kNames, name) != kNames.end() ||
         name.ends_with("__MIN") || name.ends_with("__MAX");
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string shown(std::string_view text) {
  return valid_utf8(text.substr(0, kShown)) + (text.size() > kShown ? "…" : "");
}

/// A whole number, also as "3.0".
template <class Whole>
std::optional<Whole> whole_in(std::string_view text) {
  text = trimmed(text);
  Whole value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!text.empty() && error == std::errc{} && end == text.data() + text.size()) return value;
  const auto number = plain_number(text);
  if (!number || *number != std::floor(*number) || std::abs(*number) > 9e15) return std::nullopt;
  if (*number < static_cast<double>(std::numeric_limits<Whole>::min()) ||
      *number > static_cast<double>(std::numeric_limits<Whole>::max()))
    return std::nullopt;
  return static_cast<Whole>(*number);
}

/// Written as a number, and beyond what a double holds.
bool is_out_of_range(std::string_view text) {
  text = trimmed(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc::result_out_of_range && end == text.data() + text.size();
}

/// "50 %", "50%": a number for people.
bool is_percentage(std::string_view text) {
  text = trimmed(text);
  return text.ends_with('%') && plain_number(trimmed(text.substr(0, text.size() - 1)));
}

std::string json_of(const Field& field) {
  const auto number = field.is_text ? std::nullopt : plain_number(field.text);
  if (number && std::isfinite(*number))
    return nlohmann::json::parse(trimmed(field.text), nullptr, false).is_number()
               ? std::string{trimmed(field.text)}
               : nlohmann::json(*number).dump();
  return nlohmann::json(field.text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Records::Records(std::string file, const Mapping& mapping, Sink& sink)
    : file_{std::move(file)}, mapping_{mapping}, sink_{sink}, as_row_{mapping.as_row} {
  if (as_row_.empty()) as_row_ = std::filesystem::path{file_}.stem().string();
}

void Records::expect(const std::vector<std::string>& columns) {
  const auto demand = [&](const std::string& name, const char* flag) {
    if (name.empty() || std::ranges::find(columns, name) != columns.end()) return;
    throw Error{Code::kInvalidArgument, fmt::format("{}:1:1: {}: no column is called '{}'{}", file_, flag,
                                                    name, did_you_mean(name, columns))};
  };
  demand(mapping_.row, "--row");
  demand(mapping_.seed, "--seed");
  demand(mapping_.step, "--step");
  demand(mapping_.time, "--time");
  for (const auto& name : mapping_.settings) demand(name, "--setting");
  const auto has = [&](const char* name) { return std::ranges::find(columns, name) != columns.end(); };
  is_long_ = has("metric") && has("value");
  if (!is_long_)
    for (const auto& name : mapping_.metrics) demand(name, "--metric");
  // of several that could be it, the first of the list is
  const auto settle = [&](const Names& names, const std::string& asked, Role role) {
    const auto* const found = std::ranges::find_if(names, [&](std::string_view name) {
      return !name.empty() && std::ranges::find(columns, name) != columns.end();
    });
    for (const auto& name : columns) {
      const bool is_it = asked.empty() ? found != names.end() && name == *found : name == asked;
      if (!is_it) continue;
      columns_[name].role = role;
      if (role == Role::kStep) step_ = name;
    }
  };
  settle(kRows, mapping_.row, Role::kRow);
  settle(kSeeds, mapping_.seed, Role::kSeed);
  settle(kSteps, mapping_.step, Role::kStep);
  settle(kTimes, mapping_.time, Role::kTime);
}

Records::Role Records::role_of(const std::string& name) const {
  const auto is_asked = [&](const std::vector<std::string>& names) {
    return std::ranges::find(names, name) != names.end();
  };
  if (name.empty()) return Role::kIgnored;  // pandas' numbers of lines
  if (name == mapping_.row) return Role::kRow;
  if (name == mapping_.seed) return Role::kSeed;
  if (name == mapping_.step) return Role::kStep;
  if (name == mapping_.time) return Role::kTime;
  if (is_asked(mapping_.settings)) return Role::kSetting;
  if (is_long_) {
    if (name == "metric") return Role::kMetricName;
    if (name == "value") return Role::kValue;
  } else if (is_asked(mapping_.metrics)) {
    return Role::kMetric;
  }
  if (name == "sweep") return Role::kSweep;
  if (mapping_.row.empty() && is_one_of(name, kRows)) return Role::kRow;
  if (mapping_.seed.empty() && is_one_of(name, kSeeds)) return Role::kSeed;
  if (mapping_.step.empty() && is_one_of(name, kSteps)) return Role::kStep;
  if (mapping_.time.empty() && is_one_of(name, kTimes)) return Role::kTime;
  if (is_bookkeeping(name) || is_long_) return Role::kIgnored;
  return mapping_.metrics.empty() ? Role::kUnknown : Role::kSetting;
}

Records::Column& Records::column(const std::string& name) {
  const auto known = columns_.find(name);
  if (known != columns_.end()) return known->second;
  if (columns_.size() >= kMostColumns)
    throw Error{Code::kInvalidArgument, fmt::format("{}: more than {} columns", file_, kMostColumns)};
  Role role = role_of(name);
  // another column has that meaning already: `run` beside `row` of an export
  if (role == Role::kRow || role == Role::kSeed || role == Role::kStep || role == Role::kTime)
    if (std::ranges::any_of(columns_, [&](const auto& each) { return each.second.role == role; }))
      role = role == Role::kSeed || is_bookkeeping(name) || role == Role::kTime ? Role::kIgnored
                                                                                : Role::kUnknown;
  return columns_.emplace(name, Column{.role = role}).first->second;
}

/// What a column is that nobody has told: numbers are a metric, texts a setting. Both in one are refused, for
/// a metric whose first value is "n/a" would be gone without a word.
void Records::tell(Column& column, std::size_t line, const Field& field) const {
  const bool is_number = !field.is_text && (plain_number(field.text) || is_out_of_range(field.text));
  if (column.role == Role::kUnknown) {
    if (is_percentage(field.text))
      refuse(
          line, field.column,
          fmt::format("{0}: expected a number, got '{1}'; remove the % signs, or use --setting {0} to take "
                      "the column as a setting",
                      field.name, shown(field.text)));
    column.role = is_number ? Role::kMetric : Role::kSetting;
    column.told_by = is_number ? 0 : line;
  } else if (column.told_by != 0 && is_number) {
    refuse(line, field.column,
           fmt::format("{0}: a number, and line {1} has a text: an empty cell says that there is none; "
                       "--setting {0} takes the column as a setting",
                       field.name, column.told_by));
  }
}

/// Of a line that says no step: each is one of its run, of a long table one of its metric, where no line of
/// the file says one.
std::uint32_t Records::count_step(std::size_t line, const RunKey& key, const std::string& metric) {
  if (!step_.empty())
    refuse(line, 1,
           fmt::format("no {}, which is the step of other lines; --step NAME takes another column", step_));
  return (is_long_ ? 0 : 1) + counted_[{key, metric}]++;
}

void Records::refuse(std::size_t line, std::size_t column, const std::string& what) const {
  throw Error{Code::kInvalidArgument, fmt::format("{}:{}:{}: {}", file_, line, column, what)};
}

namespace {

bool is_same_word(std::string_view text, std::string_view lower) {
  return std::ranges::equal(text, lower, {},
                            [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
}

/// What W&B, and others, say in a column of states of a run that is no result.
bool says_unfinished(const Field& field) {
  constexpr std::string_view kWords[] = {"crashed",    "failed",    "killed",   "running",
                                         "pending",    "preempted", "queued",   "stopped",
                                         "preempting", "canceled",  "cancelled"};
  if (!is_same_word(field.name, "state") && !is_same_word(field.name, "_state")) return false;
  return std::ranges::any_of(kWords, [&](auto word) { return is_same_word(trimmed(field.text), word); });
}

}  // namespace

void Records::note_setting(std::size_t line, const RunKey& key, const Field& field) {
  const auto [known, is_new] = settings_.try_emplace({key, field.name}, field.text);
  if (is_new || known->second == field.text || unsettled_) return;
  unsettled_ = {field.name, known->second, field.text, line};
}

void Records::add(std::size_t line, const std::vector<Field>& fields) {
  if (std::ranges::any_of(fields, says_unfinished)) {
    ++unfinished_;
    return;
  }
  RunKey key{.row = as_row_};
  std::uint32_t step = 0;
  std::int64_t time_ms = 0;
  const Field *metric = nullptr, *value = nullptr;
  bool has_step = false;
  std::vector<const Field*> values, settings;
  for (const Field& field : fields) {
    Column& of = column(field.name);
    if (trimmed(field.text).empty()) continue;
    tell(of, line, field);
    if (field.text.size() > kLongestName && of.role != Role::kIgnored)
      refuse(line, field.column,
             fmt::format("a text of {} bytes; expected {} at most", field.text.size(), kLongestName));
    switch (of.role) {
      case Role::kSweep:
        key.sweep = trimmed(field.text);
        break;
      case Role::kRow:
        key.row = trimmed(field.text);
        break;
      case Role::kSeed: {
        const auto seed = whole_in<std::int64_t>(field.text);
        if (!seed)
          refuse(line, field.column,
                 fmt::format("{}: expected a whole number, got '{}'", field.name, shown(field.text)));
        key.seed = *seed;
        break;
      }
      case Role::kStep: {
        const auto number = whole_in<std::uint32_t>(field.text);
        if (!number)
          refuse(line, field.column,
                 fmt::format("{}: expected a whole number from 0 to {}, got '{}'", field.name,
                             std::numeric_limits<std::uint32_t>::max(), shown(field.text)));
        step = *number, has_step = true;
        break;
      }
      case Role::kTime:
        if (const auto time = plain_number(field.text);
            time && std::isfinite(*time) && std::abs(*time) < 9e15)
          time_ms = std::llround(*time * (field.name == "time_ms" || *time > 1e11 ? 1 : 1000));
        break;
      case Role::kMetricName:
        metric = &field;
        break;
      case Role::kValue:
        value = &field;
        break;
      case Role::kMetric:
        values.push_back(&field);
        break;
      case Role::kSetting:
        settings.push_back(&field);
        break;
      case Role::kIgnored:
      case Role::kUnknown:
        break;
    }
  }
  const bool has_value = is_long_ ? value != nullptr : !values.empty();
  if (!has_step && (has_value || step_.empty()))
    step = count_step(line, key, is_long_ && metric ? metric->text : "");
  const auto number = [&](const Field& field) {
    const auto parsed = plain_number(field.text);
    if (!parsed)
      refuse(line, field.column,
             fmt::format(
                 "{}: expected a number that a double holds, got '{}'{}", field.name, shown(field.text),
                 is_long_ ? "" : fmt::format("; --setting {} takes the column as a setting", field.name)));
    return *parsed;
  };
  for (const Field* field : settings) {
    note_setting(line, key, *field);
    sink_.setting(key, field->name, json_of(*field));
  }
  if (is_long_) {
    if (!metric || !value) refuse(line, 1, fmt::format("no {}", metric ? "value" : "metric"));
    const bool is_wanted = mapping_.metrics.empty() ||
                           std::ranges::find(mapping_.metrics, metric->text) != mapping_.metrics.end();
    if (is_wanted) sink_.point(key, metric->text, step, number(*value), time_ms);
    return;
  }
  for (const Field* field : values) {
    // W&B's charts: a column "NAME - METRIC" for each run
    const auto dash = mapping_.metrics.empty() ? field->name.find(" - ") : std::string::npos;
    if (dash == std::string::npos || dash == 0 || dash + 3 == field->name.size()) {
      sink_.point(key, field->name, step, number(*field), time_ms);
      continue;
    }
    RunKey of = key;
    of.row = field->name.substr(0, dash);
    sink_.point(of, field->name.substr(dash + 3), step, number(*field), time_ms);
  }
  if (values.empty() && ++without_points_ == 1) first_without_ = line;
}

std::vector<std::string> Records::notes() const {
  std::vector<std::string> notes;
  if (unfinished_ > 0)
    notes.push_back(fmt::format("{}: skipped {} of runs that failed or have not finished", file_,
                                unfinished_ == 1 ? "1 line" : fmt::format("{} lines", unfinished_)));
  if (unsettled_)
    notes.push_back(fmt::format(
        "{0}:{1}: {2} is '{3}' here and was '{4}' before in the same run; if it tells rows apart, use "
        "--row {2}",
        file_, unsettled_->line, unsettled_->column, shown(unsettled_->other), shown(unsettled_->first)));
  if (without_points_ == 0) return notes;
  notes.push_back(fmt::format("{}: skipped {} without a metric; the first is line {}", file_,
                              without_points_ == 1 ? "1 line" : fmt::format("{} lines", without_points_),
                              first_without_));
  return notes;
}

}  // namespace abl::exchange
