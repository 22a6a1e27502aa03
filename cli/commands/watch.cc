// SPDX-License-Identifier: Apache-2.0
#include "cli/watch.h"

#include <memory>

#include "cli/command.h"

namespace abl::cli {
namespace {

Run declare_watch(CLI::App& app, Context& context) {
  auto sweep = std::make_shared<std::string>();
  add_sweep(app, *sweep);
  add_scheduler(app, context);
  return [&context, sweep] { return watch(context, *sweep); };
}

}  // namespace

extern const Command kWatchCommand{
    .place = 80,
    .name = "watch",
    .summary = "Follow a sweep: bars, rates, ETA and the table filling",
    .example = "ablate watch msf-sharing",
    .success = "the sweep completed",
    .failure = "the sweep failed or was cancelled",
    .declare = declare_watch,
};

}  // namespace abl::cli
