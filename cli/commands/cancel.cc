// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/words.h"

namespace abl::cli {
namespace {

Run declare_cancel(CLI::App& app, Context& context) {
  struct Flags {
    std::string sweep;
    std::optional<std::string> row;
    std::optional<std::int64_t> seed;
  };
  auto flags = std::make_shared<Flags>();
  add_sweep(app, flags->sweep);
  app.add_option("--row", flags->row, "Cancel only one trial: of this row, with --seed")->type_name("ROW");
  app.add_option("--seed", flags->seed, "The seed of that trial")->type_name("SEED");
  add_scheduler(app, context);
  return [&context, flags]() -> int {
    if (flags->row.has_value() != flags->seed.has_value())
      throw Error{Code::kInvalidArgument, "--row and --seed are used together: expected both or neither"};
    Client client{context};
    ablate::v1::SweepSummary sweep;
    if (flags->row) {  // also an empty one, of a script's unset variable: not the whole sweep
      ablate::v1::CancelTrialRequest request;
      request.set_sweep(flags->sweep);
      request.set_row(*flags->row);
      request.set_seed(*flags->seed);
      sweep = client.call(&ablate::v1::Sweeps::Stub::CancelTrial, request);
    } else {
      ablate::v1::SweepRequest request;
      request.set_sweep(flags->sweep);
      sweep = client.call(&ablate::v1::Sweeps::Stub::CancelSweep, request);
    }
    if (context.json)
      context.print_json(sweep);
    else
      context.out.line(summary_text(sweep, context.out));
    return kExitOk;
  };
}

}  // namespace

extern const Command kCancelCommand{
    .place = 110,
    .name = "cancel",
    .summary = "Cancel a sweep, or one trial of it; stored results stay",
    .example = "ablate cancel msf-sharing",
    .declare = declare_cancel,
};

}  // namespace abl::cli
