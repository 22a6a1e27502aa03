// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

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

std::string list_text(const ablate::v1::ListSweepsResponse& list, const Terminal& terminal) {
  if (list.sweeps().empty()) return "no sweeps yet: submit one with 'ablate submit FILE'\n";
  Grid grid{{{"sweep"},
             {"state"},
             {"trials", true},
             {"progress"},
             {"running", true},
             {"failed", true},
             {"ETA", true},
             {"submitted", true}}};
  for (const auto& sweep : list.sweeps()) {
    const auto& trials = sweep.trials();
    const double done = trials.total() ? static_cast<double>(trials.completed()) / trials.total() : 0;
    const std::optional<double> eta =
        sweep.has_eta_seconds() ? std::optional{sweep.eta_seconds()} : std::nullopt;
    grid.add(
        {sweep.name(), painted(sweep.state(), terminal),
         fmt::format("{}/{}", trials.completed(), trials.total()), bar(done, 10),
         fmt::format("{}", trials.leased() + trials.running()),
         fmt::format("{}", trials.failed()) + (trials.held() ? fmt::format(", {} held", trials.held()) : ""),
         is_finished(sweep.state()) ? "" : format_eta(eta),
         format_age(sweep.created(), SystemClock{}.now())});
  }
  return grid.text(&terminal);
}

}  // namespace

Run declare_ls(CLI::App& app, Context& context) {
  auto names = std::make_shared<bool>(false);
  app.add_flag("--names", *names, "Print names only, one a line");
  add_source(app, context);
  return [&context, names]() -> int {
    const auto list = open_source(context)->list_sweeps();
    if (context.json) {
      context.print_json(list);
    } else if (*names) {
      for (const auto& sweep : list.sweeps()) context.out.line(sweep.name());
    } else {
      context.out.write(list_text(shown(list, context.out), context.out));
    }
    return kExitOk;
  };
}

}  // namespace abl::cli
