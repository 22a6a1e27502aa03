// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "base/error.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/judge.h"
#include "cli/watch.h"

namespace abl::cli {
namespace {

using namespace ablate::v1;

struct Flags {
  std::string file;
  std::optional<int> priority;
  bool watch = false;
};

std::string said(const SubmitResponse& response) {
  const auto& sweep = response.sweep();
  if (!response.created()) {
    const std::string there = fmt::format("{} is there already, with the same content", sweep.name());
    if (sweep.state() == SWEEP_STATE_CANCELLED)
      return fmt::format("{}, and it is cancelled: run it again with 'ablate retry {}'", there, sweep.name());
    if (sweep.state() == SWEEP_STATE_PAUSED)
      return fmt::format("{}, and it is paused: let it go on with 'ablate resume {}'", there, sweep.name());
    return fmt::format("{}, at priority {}", there, sweep.priority());
  }
  std::string text = fmt::format("{} submitted: {}, {} new", sweep.name(),
                                 plural(sweep.trials().total(), "trial"), response.new_trials());
  if (response.shared_trials())
    text += fmt::format(", {} shared with other sweeps", response.shared_trials());
  return text;
}

}  // namespace

Run declare_submit(CLI::App& app, Context& context) {
  auto flags = std::make_shared<Flags>();
  app.add_option("FILE", flags->file, "Sweep file")->required()->type_name("");
  app.add_option("--priority", flags->priority, "Higher runs first [0]")
      ->check(whole_number(-1000, 1000))
      ->type_name("N");
  app.add_flag("--watch", flags->watch, "Follow the sweep until it is finished");
  add_scheduler(app, context);
  return [&context, flags]() -> int {
    SubmitRequest request;
    *request.mutable_file() = read_sweep_file(flags->file);
    if (flags->priority) request.set_priority(*flags->priority);
    const auto response = submit(context, request);
    if (context.json)
      context.print_json(response);
    else
      context.out.line(said(response));
    if (!context.json)
      for (const auto& note : response.notes()) context.note(note);
    if (flags->watch) return watch(context, response.sweep().name());
    if (!context.json && response.sweep().state() != SWEEP_STATE_CANCELLED)
      context.out.line(fmt::format("follow it with: ablate watch {}", response.sweep().name()));
    return kExitOk;
  };
}

}  // namespace abl::cli
