// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "base/error.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/grid.h"
#include "cli/shown.h"
#include "cli/source.h"
#include "cli/words.h"

namespace abl::cli {
namespace {

std::string step_text(const ablate::v1::TrialSummary& trial) {
  if (trial.total_steps() == 0) return trial.step() ? fmt::format("{}", trial.step()) : "";
  return fmt::format("{}/{}", trial.step(), trial.total_steps());
}

/// Why a trial waits, failed, or has results that are not what they seem.
std::string why_text(const ablate::v1::TrialSummary& trial) {
  std::vector<std::string> reasons;
  if (!trial.reason().empty()) reasons.push_back(trial.reason().substr(0, trial.reason().find('\n')));
  if (trial.unfilled()) reasons.emplace_back("missing: it did not report a metric of the table");
  if (trial.refused_lines() > 0)
    reasons.push_back(fmt::format("{} refused, such as {}", plural(trial.refused_lines(), "metric report"),
                                  trial.refused_example()));
  if (trial.repeated_points() > 0)
    reasons.push_back(
        fmt::format("{} repeating an earlier step with a different value; the first value was kept",
                    plural(trial.repeated_points(), "point")));
  if (!trial.before_mend().empty()) reasons.push_back("made before a correction: " + trial.before_mend());
  return fmt::format("{}", fmt::join(reasons, "; "));
}

/// Where the table cuts them: each reason once and whole, with its rows and seeds.
std::string reasons_text(const ablate::v1::SweepDetail& sweep) {
  constexpr std::size_t kNamed = 20;
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;  // in the order of the table
  std::unordered_map<std::string, std::size_t> places;                    // of reasons among these
  for (const auto& trial : sweep.trials()) {
    const std::string why = why_text(trial);
    if (why.empty()) continue;
    const auto [place, fresh] = places.try_emplace(why, reasons.size());
    if (fresh) reasons.emplace_back(why, std::vector<std::string>{});
    reasons[place->second].second.push_back(fmt::format("{}/{}", trial.row(), trial.seed()));
  }
  std::string text;
  for (const auto& [why, trials] : reasons) {
    const std::size_t named = std::min(trials.size(), kNamed);
    text += fmt::format("{}: {}{}\n", why,
                        fmt::join(trials.begin(), trials.begin() + static_cast<std::ptrdiff_t>(named), ", "),
                        trials.size() > named ? fmt::format(" and {} more", trials.size() - named) : "");
  }
  return text.empty() ? text : "\n" + text;
}

std::string detail_text(const ablate::v1::SweepDetail& sweep, const Terminal& terminal) {
  const auto& summary = sweep.summary();
  std::string text = summary_text(summary, terminal) + "\n";
  text += fmt::format("{} × {}, priority {}, submitted {} from {}\n\n", plural(summary.rows(), "row"),
                      plural(summary.seeds(), "seed"), summary.priority(),
                      format_age(summary.created(), SystemClock{}.now()), sweep.file());
  constexpr int kLeastOfANote = 16;
  enum Rank { kWorker = 1, kStep, kAttempt };  // what a narrow terminal leaves out, the last of these first
  Grid grid{{{.heading = "row", .least = 6},
             {"seed", true},
             {"state"},
             {"run", true},
             {.heading = "attempt", .right_aligned = true, .rank = kAttempt},
             {.heading = "worker", .rank = kWorker},
             {.heading = "step", .right_aligned = true, .rank = kStep},
             {.heading = "why", .least = kLeastOfANote}}};
  for (const auto& trial : sweep.trials())
    grid.add({trial.row(), fmt::format("{}", trial.seed()), painted(trial.state(), terminal),
              trial.run() ? fmt::format("{}", trial.run()) : "",
              trial.attempt() ? fmt::format("{}", trial.attempt()) : "", trial.worker(), step_text(trial),
              why_text(trial)});
  const bool cut = terminal.width() > 0 && std::ranges::any_of(grid.lines(), [&](const std::string& line) {
                     return display_width(line) > terminal.width();
                   });
  std::vector<std::string> left_out;
  for (const auto& column : grid.fit_to(terminal.width())) left_out.push_back(column.heading);
  text += grid.text(&terminal);
  if (!left_out.empty())
    text +=
        fmt::format("\nno room for: {} (a wider terminal, or --json, has them)\n", fmt::join(left_out, ", "));
  return cut ? text + reasons_text(sweep) : text;
}

Run declare_show(CLI::App& app, Context& context) {
  auto sweep = std::make_shared<std::string>();
  add_sweep(app, *sweep);
  add_source(app, context);
  return [&context, sweep]() -> int {
    const auto detail = open_source(context)->sweep(*sweep);
    if (context.json)
      context.print_json(detail);
    else
      context.out.write(detail_text(shown(detail, context.out), context.out));
    return kExitOk;
  };
}

}  // namespace

extern const Command kShowCommand{
    .place = 70,
    .name = "show",
    .summary = "Show a sweep and its trials",
    .example = "ablate show msf-sharing",
    .declare = declare_show,
};

}  // namespace abl::cli
