// SPDX-License-Identifier: Apache-2.0
#include "cli/watch_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "cli/format.h"
#include "cli/words.h"
#include "printing/grid.h"
#include "printing/row_names.h"
#include "printing/sheet.h"
#include "printing/table.h"
#include "storage/table.h"

namespace abl::cli {
namespace {

using namespace ablate::v1;

bool is_under_way(TrialState state) { return state == TRIAL_STATE_LEASED || state == TRIAL_STATE_RUNNING; }

bool is_under_way(const TrialSummary& trial) { return is_under_way(trial.state()); }

/// While it runs, or at the end.
bool is_shown(const TrialSummary& trial) {
  return is_under_way(trial) || trial.state() == TRIAL_STATE_FAILED || trial.state() == TRIAL_STATE_HELD ||
         trial.unfilled();
}

std::string place_of(const TrialSummary& trial) {
  return fmt::format("row {} seed {}", trial.row(), trial.seed());
}

double share_done(const TrialSummary& trial) {
  if (trial.state() == TRIAL_STATE_COMPLETED) return 1;
  return is_under_way(trial) && trial.total_steps()
             ? std::min(1.0, static_cast<double>(trial.step()) / trial.total_steps())
             : 0;
}

std::optional<double> eta_of(const auto& message) {
  return message.has_eta_seconds() ? std::optional{message.eta_seconds()} : std::nullopt;
}

/// As the table has it.
std::string value_text(const Column& column, double value) {
  const auto digits = column.has_digits() ? std::optional{static_cast<int>(column.digits())} : std::nullopt;
  return storage::format_cell(value, {}, digits, printing::unit_of(column));
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// "retry in 7 s" is the same reason as "retry in 6 s".
std::string without_countdown(std::string reason) {
  constexpr std::string_view kRetry = "retry", kIn = " in ", kSeconds = " s";
  for (std::size_t at = 0; (at = reason.find(kRetry, at)) != std::string::npos;) {
    at += kRetry.size();
    if (reason.compare(at, kIn.size(), kIn) != 0) continue;
    const std::size_t number = at + kIn.size(), end = reason.find_first_not_of("0123456789", number);
    if (end != std::string::npos && end > number && reason.compare(end, kSeconds.size(), kSeconds) == 0)
      reason.erase(at, end + kSeconds.size() - at);
  }
  return reason;
}

}  // namespace

std::vector<std::string> WatchScreen::update(const SweepProgress& progress) {
  const bool first = !begun_;  // how everything stands is no news
  const std::set<std::string> known{summary().holds().begin(), summary().holds().end()};
  begun_ = begun_ || !progress.more();
  if (progress.number() > 0) number_ = progress.number();
  *progress_.mutable_summary() = progress.summary();
  *progress_.mutable_waiting() = progress.waiting();
  progress_.set_trouble(progress.trouble());
  if (progress.has_table()) *progress_.mutable_table() = progress.table();
  std::vector<std::string> news;
  const std::set<std::string> holds{summary().holds().begin(), summary().holds().end()};
  if (const auto lines = holds_of(summary()); !first)
    for (int i = 0; i < summary().holds_size(); ++i)
      if (!known.contains(summary().holds(i))) news.push_back(lines[static_cast<std::size_t>(i)]);
  for (const auto& trial : progress.trials()) {
    const Key key{trial.row(), trial.seed()};
    const auto seen = states_.find(key);
    const bool changed = seen == states_.end() || seen->second != trial.state();
    const bool was_under_way = seen != states_.end() && is_under_way(seen->second);
    const bool returned = trial.state() == TRIAL_STATE_QUEUED && was_under_way;
    const bool ended = !is_under_way(trial) && trial.state() != TRIAL_STATE_QUEUED;
    states_[key] = trial.state();
    if (is_shown(trial))
      trials_[key] = trial;
    else
      trials_.erase(key);
    if (first || !changed || !(returned || ended)) continue;
    if (trial.state() == TRIAL_STATE_HELD && holds.contains(trial.reason())) continue;  // said of all of them
    std::string line =
        fmt::format("{}: {}", place_of(trial), returned ? "back in the queue" : word(trial.state()));
    if (trial.state() == TRIAL_STATE_COMPLETED)
      line += metrics_of(trial);
    else if (trial.state() == TRIAL_STATE_HELD)
      line = fmt::format("{}: {}", place_of(trial), first_line(trial.reason()));
    else if (!trial.reason().empty())
      line += ": " + first_line(trial.reason());
    news.push_back(std::move(line));
  }
  return news;
}

double WatchScreen::fraction() const {
  const auto total = summary().trials().total();
  if (total == 0) return 0;
  double done = summary().trials().completed() - summary().trials().unfilled();  // as the counts beside it
  if (is_finished(summary().state())) return done / total;
  for (const auto& [key, trial] : trials_)
    if (is_under_way(trial)) done += share_done(trial);
  return std::min(1.0, done / total);
}

double WatchScreen::rate() const {
  double rate = 0;
  for (const auto& [key, trial] : trials_)
    if (is_under_way(trial)) rate += trial.steps_per_second();
  return rate;
}

/// The table's metric columns, each metric once: two columns may take different values of one.
std::vector<Column> WatchScreen::metrics() const {
  std::vector<Column> columns;
  std::set<std::string> seen;
  for (const auto& column : table().columns())
    if (column.kind() == Column::KIND_METRIC && seen.insert(column.source()).second)
      columns.push_back(column);
  return columns;
}

std::string WatchScreen::metrics_of(const TrialSummary& trial) const {
  std::string text;
  for (const auto& column : metrics())
    if (const auto last = trial.last().find(column.source()); last != trial.last().end())
      text += fmt::format("  {} {}", column.source(), value_text(column, last->second));
  return text;
}

std::string WatchScreen::trouble() const {
  return progress_.trouble().empty() ? "" : "the scheduler can store nothing: " + progress_.trouble();
}

std::string WatchScreen::status() const {
  if (is_finished(summary().state()))
    return fmt::format("{}: {}, {}", summary().name(), word(summary().state()),
                       counts_text(summary().trials()));
  const std::string tuning = tuning_text(summary());
  return fmt::format("{} {:.0f}%, {}{}, {}, ETA {}", summary().name(), fraction() * 100,
                     counts_text(summary().trials()), tuning.empty() ? "" : ", " + tuning,
                     format_rate(rate(), "steps"), format_eta(eta_of(summary())));
}

std::vector<std::string> WatchScreen::failures() const {
  std::vector<std::string> lines = holds_of(summary());
  const std::set<std::string> holds{summary().holds().begin(), summary().holds().end()};
  for (const auto& [key, trial] : trials_)
    if (trial.state() == TRIAL_STATE_HELD && holds.contains(trial.reason()))
      continue;
    else if (trial.state() == TRIAL_STATE_FAILED)
      lines.push_back(fmt::format("{}: failed at attempt {}: {}", place_of(trial), trial.attempt(),
                                  first_line(trial.reason())));
    else if (trial.state() == TRIAL_STATE_HELD)
      lines.push_back(fmt::format("{}: {}", place_of(trial), first_line(trial.reason())));
    else if (trial.unfilled())
      lines.push_back(
          fmt::format("{}: completed, but it did not report every metric of the table", place_of(trial)));
  return lines;
}

std::vector<std::string> WatchScreen::waiting() const {
  std::map<std::string, std::uint64_t> counts;
  for (const auto& waiting : progress_.waiting()) counts[first_line(waiting.reason())] += waiting.trials();
  std::vector<std::string> lines;
  for (const auto& [reason, count] : counts)
    lines.push_back(fmt::format("{} wait{}: {}", plural(count, "trial"), count == 1 ? "s" : "", reason));
  return lines;
}

std::set<std::string> WatchScreen::reasons() const {
  std::set<std::string> reasons;
  for (const auto& waiting : progress_.waiting())
    reasons.insert(without_countdown(first_line(waiting.reason())));
  return reasons;
}

/// A line for each running trial: which it is, its metrics, and then how far it is.
std::vector<std::string> WatchScreen::running(const Terminal& terminal) const {
  enum Rank { kSteps = 1, kRate, kWorker, kBar };
  const printing::RowNames names{table()};
  std::vector<printing::Grid::Column> columns = names.short_columns();
  columns.push_back({.heading = "seed", .right_aligned = true});
  for (const auto& column : metrics())
    columns.push_back({.heading = printing::name_of(column), .right_aligned = true});
  columns.push_back({.heading = "step", .right_aligned = true, .rank = kSteps});
  columns.push_back({.heading = "ETA", .right_aligned = true});
  columns.push_back({.heading = "rate", .right_aligned = true, .rank = kRate});
  columns.push_back({.heading = "worker", .rank = kWorker});
  columns.push_back({.heading = "", .rank = kBar});
  printing::Grid grid{columns};
  for (const auto& [key, trial] : trials_) {
    if (!is_under_way(trial)) continue;
    std::vector<std::string> cells = names.short_cells(trial.row());
    cells.push_back(fmt::format("{}", trial.seed()));
    for (const auto& column : metrics()) {
      const auto last = trial.last().find(column.source());
      cells.push_back(last == trial.last().end() ? "–" : value_text(column, last->second));
    }
    cells.push_back(trial.total_steps() ? fmt::format("{}/{}", trial.step(), trial.total_steps())
                                        : fmt::format("{}", trial.step()));
    cells.push_back(format_eta(eta_of(trial)));
    cells.push_back(format_rate(trial.steps_per_second(), "steps"));
    cells.push_back(trial.worker());
    cells.push_back(bar(share_done(trial), 12));
    grid.add(std::move(cells));
  }
  if (grid.empty()) return {};
  grid.fit_to(terminal.width());
  return grid.lines(&terminal);
}

std::vector<std::string> WatchScreen::lines(const Terminal& terminal) const {
  std::vector<std::string> lines{summary_text(summary(), terminal)};
  lines.push_back(fmt::format("{} {:3.0f}%  {}  ETA {}", terminal.paint(Style::kCyan, bar(fraction(), 30)),
                              fraction() * 100, format_rate(rate(), "steps"), format_eta(eta_of(summary()))));
  if (auto under_way = running(terminal); !under_way.empty()) {
    lines.emplace_back();
    std::ranges::move(under_way, std::back_inserter(lines));
  }
  for (const auto& reason : waiting()) lines.push_back(terminal.paint(Style::kDim, reason));
  if (!trouble().empty()) lines.push_back(terminal.paint(Style::kRed, "note: " + trouble()));
  lines.emplace_back();
  std::ranges::copy(printing::table_lines(table(), &terminal), std::back_inserter(lines));
  return lines;
}

}  // namespace abl::cli
