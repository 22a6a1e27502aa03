// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <thread>

#include "base/error.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/words.h"

namespace abl::cli {
namespace {

using ablate::v1::RemoveSweepRequest;
using ablate::v1::RemoveSweepResponse;
using ablate::v1::Sweeps;
using namespace std::chrono_literals;

struct RmFlags {
  std::string sweep;
  bool yes = false;
};

ablate::v1::SweepSummary summary_of(Client& client, const std::string& name) {
  ablate::v1::SweepRequest request;
  request.set_sweep(name);
  request.set_trials(1);
  return client.call(&Sweeps::Stub::GetSweep, request).summary();
}

/// Waits until the last of it is gone, which does not need us.
RemoveSweepResponse wait_for(const Context& context, Client& client, RemoveSweepResponse left,
                             std::uint32_t trials) {
  Progress progress{context.err, "removing", "trials", static_cast<double>(trials)};
  RemoveSweepRequest request;
  request.set_id(left.id());
  for (; !left.gone(); left = client.call(&Sweeps::Stub::RemoveSweep, request)) {
    if (left.stopping() > 0)
      context.note(fmt::format("{} to stop first", left.stopping() == 1
                                                       ? "1 run has"
                                                       : fmt::format("{} runs have", left.stopping())));
    progress.update(trials - std::min(trials, left.trials()));
    std::this_thread::sleep_for(50ms);
  }
  return left;
}

Run declare_rm(CLI::App& app, Context& context) {
  auto flags = std::make_shared<RmFlags>();
  add_sweep(app, flags->sweep);
  app.add_flag("--yes,-y", flags->yes, "Do not ask");
  add_scheduler(app, context);
  return [&context, flags]() -> int {
    Client client{context};
    const auto summary = summary_of(client, flags->sweep);
    const auto trials = summary.trials().total();
    const auto tuning = summary.tuning().trials().total();
    context.confirm(
        fmt::format("Remove sweep {} with {}{}, their runs, points and logs? What other sweeps show stays.",
                    flags->sweep, plural(trials, "trial"),
                    tuning > 0 ? fmt::format(" and {}", plural(tuning, "tuning trial")) : ""),
        flags->yes);
    RemoveSweepRequest request;
    request.set_sweep(flags->sweep);
    const auto gone = wait_for(context, client, client.call(&Sweeps::Stub::RemoveSweep, request), trials);
    if (context.json)
      context.print_json(gone);
    else
      context.out.line(fmt::format(
          "sweep {} is removed; 'ablate gc' frees the disk that its runs' folders take", flags->sweep));
    return kExitOk;
  };
}

}  // namespace

extern const Command kRmCommand{
    .place = 144,
    .name = "rm",
    .summary = "Remove an ended or cancelled sweep and what only it shows",
    .example = "ablate cancel msf-sharing && ablate rm msf-sharing --yes",
    .success = "removed",
    .declare = declare_rm,
};

}  // namespace abl::cli
