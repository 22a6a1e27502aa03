// SPDX-License-Identifier: Apache-2.0
#include "cli/watch_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/format.h"
#include "cli/grid.h"
#include "cli/table_renderer.h"
#include "cli/words.h"

namespace abl::cli {
namespace {

using namespace ablate::v1;

bool is_under_way(const TrialSummary& trial) {
  return trial.state() == TRIAL_STATE_LEASED || trial.state() == TRIAL_STATE_RUNNING;
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

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

std::vector<std::string> WatchView::update(const SweepProgress& progress) {
  const bool first = trials_.empty();
  progress_ = progress;
  std::vector<std::string> news;
  for (const auto& trial : progress.trials()) {
    const Key key{trial.row(), trial.seed()};
    const auto known = trials_.find(key);
    const bool changed = known == trials_.end() || known->second.state() != trial.state();
    const bool was_under_way = known != trials_.end() && is_under_way(known->second);
    const bool returned = trial.state() == TRIAL_STATE_QUEUED && was_under_way;
    const bool ended = !is_under_way(trial) && trial.state() != TRIAL_STATE_QUEUED;
    trials_[key] = trial;
    if (first || !changed || !(returned || ended)) continue;
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

double WatchView::fraction() const {
  const auto total = summary().trials().total();
  if (total == 0) return 0;
  double done = summary().trials().completed();
  for (const auto& [key, trial] : trials_)
    if (is_under_way(trial)) done += share_done(trial);
  return std::min(1.0, done / total);
}

double WatchView::rate() const {
  double rate = 0;
  for (const auto& [key, trial] : trials_)
    if (is_under_way(trial)) rate += trial.steps_per_second();
  return rate;
}

std::string WatchView::metrics_of(const TrialSummary& trial) const {
  std::string text;
  std::set<std::string> shown;  // two columns may take different values of one metric
  for (const auto& column : table().columns()) {
    const auto last = trial.last().find(column.source());
    if (column.kind() == Column::KIND_METRIC && last != trial.last().end() &&
        shown.insert(column.source()).second)
      text += fmt::format("  {} {:.{}f}", column.source(), last->second, column.digits());
  }
  return text;
}

std::string WatchView::status() const {
  return fmt::format("{} {:.0f}%, {}, {}, ETA {}", summary().name(), fraction() * 100,
                     counts_text(summary().trials()), format_rate(rate(), "steps"),
                     format_eta(eta_of(summary())));
}

std::vector<std::string> WatchView::failures() const {
  std::vector<std::string> lines;
  for (const auto& [key, trial] : trials_)
    if (trial.state() == TRIAL_STATE_FAILED)
      lines.push_back(fmt::format("{}: failed at attempt {}: {}", place_of(trial), trial.attempt(),
                                  first_line(trial.reason())));
    else if (trial.state() == TRIAL_STATE_HELD)
      lines.push_back(fmt::format("{}: {}", place_of(trial), first_line(trial.reason())));
    else if (trial.unfilled())
      lines.push_back(
          fmt::format("{}: completed, but it did not report every metric of the table", place_of(trial)));
  return lines;
}

std::vector<std::string> WatchView::lines(const Terminal& terminal) const {
  std::vector<std::string> lines{summary_text(summary(), terminal)};
  lines.push_back(fmt::format("{} {:3.0f}%  {}  ETA {}", terminal.paint(Style::kCyan, bar(fraction(), 30)),
                              fraction() * 100, format_rate(rate(), "steps"), format_eta(eta_of(summary()))));
  Grid running{{{"row"},
                {"seed", true},
                {""},
                {"step", true},
                {"rate", true},
                {"ETA", true},
                {"worker"},
                {"metrics"}}};
  std::map<std::string, int> waiting;
  for (const auto& [key, trial] : trials_) {
    if (trial.state() == TRIAL_STATE_QUEUED && !trial.reason().empty()) ++waiting[first_line(trial.reason())];
    if (!is_under_way(trial)) continue;
    const std::string step = trial.total_steps() ? fmt::format("{}/{}", trial.step(), trial.total_steps())
                                                 : fmt::format("{}", trial.step());
    running.add({trial.row(), fmt::format("{}", trial.seed()), bar(share_done(trial), 12), step,
                 format_rate(trial.steps_per_second(), "steps"), format_eta(eta_of(trial)), trial.worker(),
                 metrics_of(trial)});
  }
  if (!running.empty()) {
    lines.emplace_back();
    std::ranges::copy(running.lines(&terminal), std::back_inserter(lines));
  }
  for (const auto& [reason, count] : waiting)
    lines.push_back(terminal.paint(
        Style::kDim,
        fmt::format("{} waiting: {}", plural(static_cast<std::uint64_t>(count), "trial"), reason)));
  lines.emplace_back();
  std::ranges::copy(table_lines(table(), &terminal), std::back_inserter(lines));
  return lines;
}

}  // namespace abl::cli
