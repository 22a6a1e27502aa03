// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "cli/budget.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/dashboard_link.h"
#include "cli/format.h"
#include "cli/provenance.h"
#include "cli/shown.h"
#include "cli/sweep_checks.h"
#include "cli/words.h"

namespace abl::cli {
namespace {

using namespace ablate::v1;
using namespace std::chrono_literals;

struct ExtendFlags {
  std::string file, scale;
  bool yes = false, dry_run = false, no_provenance = false;
  BudgetFlags budget;
};

constexpr std::chrono::seconds kExtensionPatience{60};  // of a sweep with 100,000 trials

std::string trials_text(const ExtendSweepResponse& response) {
  std::string text = plural(response.new_trials(), "new trial");
  if (response.continued_trials() > 0)
    text += fmt::format(" ({} from a checkpoint)", response.continued_trials());
  if (response.shared_trials() > 0) text += fmt::format(", {} stored already", response.shared_trials());
  text += fmt::format(", {} stay", response.kept_trials());
  if (response.former_trials() > 0)
    text += fmt::format(", {} no longer of the table: kept, and listed by 'ablate show'",
                        response.former_trials());
  return text;
}

void print_changes(const Terminal& out, const ExtendSweepResponse& response) {
  for (const auto& change : response.changes()) out.line("  " + change);
  out.line(trials_text(response));
}

Run declare_extend(CLI::App& app, Context& context) {
  auto flags = std::make_shared<ExtendFlags>();
  app.add_option("FILE", flags->file, "Sweep file, of the name of a stored sweep")->required()->type_name("");
  add_scale(app, flags->scale);
  app.add_flag("--yes,-y", flags->yes, "Do not ask");
  app.add_flag("--dry-run", flags->dry_run, "Only say what would change");
  app.add_flag("--no-provenance", flags->no_provenance,
               "Record nothing of its folder: no git commit and diff, no Python packages");
  add_budget(app, flags->budget);
  add_scheduler(app, context);
  return [&context, flags]() -> int {
    Client client{context};
    ExtendSweepRequest request;
    *request.mutable_file() = read_sweep_file(flags->file, flags->scale);
    request.set_by(user_name());
    request.set_dry_run(true);
    if (flags->budget.given()) *request.mutable_budget() = flags->budget.message(SystemClock{}.now());
    const bool asks = !flags->yes && !flags->dry_run;
    ExtendSweepResponse response;
    if (flags->dry_run || asks) {
      response = client.call(&Sweeps::Stub::ExtendSweep, request, kExtensionPatience);
      if (!context.json || asks) {
        const auto said = shown(response, context.out);
        if (response.changed()) print_changes(asks ? context.err : context.out, said);
        for (const auto& note : said.notes()) context.note(note);
      }
      if (flags->dry_run) {
        if (context.json)
          context.print_json(response);
        else if (!response.changed())
          context.out.line(fmt::format("{}: the file is what is stored", response.sweep().name()));
        return kExitOk;
      }
      if (response.changed())
        context.confirm(fmt::format("Extend sweep {}?", response.sweep().name()), false);
      request.set_expected(response.stored());
    }
    request.set_dry_run(false);
    if (!flags->no_provenance) *request.mutable_provenance() = provenance_of(request.file());
    response = client.call(&Sweeps::Stub::ExtendSweep, request, kExtensionPatience);
    if (context.json) {
      context.print_json(response);
      return kExitOk;
    }
    const auto said = shown(response, context.out);
    if (!response.changed()) {
      context.out.line(
          fmt::format("{}: the file is what is stored{}", said.sweep().name(),
                      flags->budget.given() ? "; its budget is now " + budget_text(said.sweep()) : ""));
      return kExitOk;
    }
    context.out.line(fmt::format("{} extended (revision {}):", said.sweep().name(), said.sweep().revision()));
    print_changes(context.out, said);
    if (!asks)
      for (const auto& note : said.notes()) context.note(note);
    context.out.line(fmt::format("follow it with: ablate watch {}", said.sweep().name()));
    print_dashboard_link(context, client, said.sweep().name());
    return kExitOk;
  };
}

}  // namespace

extern const Command kExtendCommand{
    .place = 55,
    .name = "extend",
    .summary = "Make a stored sweep grow: more seeds, rows, levels or epochs; a mended command",
    .example = "ablate extend sweep.yaml --dry-run && ablate extend sweep.yaml --yes",
    .success = "it is extended, or was what the file says",
    .declare = declare_extend,
};

}  // namespace abl::cli
