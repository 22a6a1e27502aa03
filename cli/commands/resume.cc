// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "base/error.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/words.h"

namespace abl::cli {
namespace {

Run declare_resume(CLI::App& app, Context& context) {
  auto request = std::make_shared<ablate::v1::ResumeSweepRequest>();
  add_sweep(app, *request->mutable_sweep());
  add_scheduler(app, context);
  return [&context, request]() -> int {
    Client client{context};
    const auto sweep = client.call(&ablate::v1::Sweeps::Stub::ResumeSweep, *request);
    if (context.json)
      context.print_json(sweep);
    else
      context.out.line(summary_text(sweep, context.out));
    return kExitOk;
  };
}

}  // namespace

extern const Command kResumeCommand{
    .place = 130,
    .name = "resume",
    .summary = "Resume a paused sweep",
    .example = "ablate resume msf-sharing",
    .declare = declare_resume,
};

}  // namespace abl::cli
