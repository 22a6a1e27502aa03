// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "base/error.h"
#include "cli/budget.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/words.h"

namespace abl::cli {
namespace {

Run declare_resume(CLI::App& app, Context& context) {
  auto request = std::make_shared<ablate::v1::ResumeSweepRequest>();
  auto budget = std::make_shared<BudgetFlags>();
  add_sweep(app, *request->mutable_sweep());
  add_budget(app, *budget);
  add_scheduler(app, context);
  return [&context, request, budget]() -> int {
    if (budget->given()) *request->mutable_budget() = budget->message(SystemClock{}.now());
    Client client{context};
    const auto sweep = client.call(&ablate::v1::Sweeps::Stub::ResumeSweep, *request);
    if (context.json)
      context.print_json(sweep);
    else
      context.out.line(summary_text(sweep, context.out) +
                       (sweep.has_budget() ? "; " + budget_text(sweep) : ""));
    return kExitOk;
  };
}

}  // namespace

extern const Command kResumeCommand{
    .place = 130,
    .name = "resume",
    .summary = "Resume a sweep that is paused, or whose budget is spent",
    .example = "ablate resume msf-sharing",
    .declare = declare_resume,
};

}  // namespace abl::cli
