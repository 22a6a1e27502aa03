// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

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
    reasons.push_back(fmt::format("{} could not be read as metrics, such as {}",
                                  plural(trial.refused_lines(), "line"), trial.refused_example()));
  if (!trial.before_mend().empty()) reasons.push_back("made before a correction: " + trial.before_mend());
  return fmt::format("{}", fmt::join(reasons, "; "));
}

std::string detail_text(const ablate::v1::SweepDetail& sweep, const Terminal& terminal) {
  const auto& summary = sweep.summary();
  std::string text = summary_text(summary, terminal) + "\n";
  text += fmt::format("{} × {}, priority {}, submitted {} from {}\n\n", plural(summary.rows(), "row"),
                      plural(summary.seeds(), "seed"), summary.priority(),
                      format_age(summary.created(), SystemClock{}.now()), sweep.file());
  Grid grid{{{"row"},
             {"seed", true},
             {"state"},
             {"run", true},
             {"attempt", true},
             {"worker"},
             {"step", true},
             {"why"}}};
  for (const auto& trial : sweep.trials())
    grid.add({trial.row(), fmt::format("{}", trial.seed()), painted(trial.state(), terminal),
              trial.run() ? fmt::format("{}", trial.run()) : "",
              trial.attempt() ? fmt::format("{}", trial.attempt()) : "", trial.worker(), step_text(trial),
              why_text(trial)});
  return text + grid.text(&terminal);
}

}  // namespace

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

}  // namespace abl::cli
