// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "base/error.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/words.h"

namespace abl::cli {
namespace {

Run declare_pause(CLI::App& app, Context& context) {
  struct Flags {
    std::string sweep;
    bool stop_running = false;
  };
  auto flags = std::make_shared<Flags>();
  add_sweep(app, flags->sweep);
  app.add_flag("--stop-running", flags->stop_running, "Also checkpoint and requeue running trials");
  add_scheduler(app, context);
  return [&context, flags]() -> int {
    ablate::v1::PauseSweepRequest request;
    request.set_sweep(flags->sweep);
    request.set_stop_running(flags->stop_running);
    Client client{context};
    const auto sweep = client.call(&ablate::v1::Sweeps::Stub::PauseSweep, request);
    if (context.json)
      context.print_json(sweep);
    else
      context.out.line(summary_text(sweep, context.out));
    return kExitOk;
  };
}

}  // namespace

extern const Command kPauseCommand{
    .place = 120,
    .name = "pause",
    .summary = "Stop starting trials of a sweep",
    .example = "ablate pause msf-sharing --stop-running",
    .declare = declare_pause,
};

}  // namespace abl::cli
