// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/dashboard_link.h"
#include "cli/format.h"
#include "cli/words.h"

namespace abl::cli {
namespace {

Run declare_retry(CLI::App& app, Context& context) {
  auto request = std::make_shared<ablate::v1::RetrySweepRequest>();
  add_sweep(app, *request->mutable_sweep());
  app.add_option("--row", *request->mutable_row(), "Only this row's trials")->type_name("ROW");
  app.add_option_function<std::int64_t>(
         "--seed", [request](std::int64_t seed) { request->set_seed(seed); },
         "Only that row's trial with this seed")
      ->type_name("SEED");
  app.add_flag_callback(
      "--held", [request] { request->set_only_held(true); },
      "Only held trials: those whose workers kept dying while running nothing else, and those that share "
      "what fails");
  app.add_flag_callback(
      "--missing", [request] { request->set_unfilled(true); },
      "Only completed trials that did not report a metric of the table");
  app.add_flag_callback(
      "--before-mend", [request] { request->set_before_mend(true); },
      "Only completed trials with results from before a correction of the trainer");
  add_scheduler(app, context);
  return [&context, request]() -> int {
    if (int{request->only_held()} + int{request->unfilled()} + int{request->before_mend()} > 1)
      throw Error{Code::kInvalidArgument,
                  "--held, --missing and --before-mend exclude each other: expected one of them"};
    if (request->has_seed() && request->row().empty())
      throw Error{Code::kInvalidArgument, "--seed requires --row"};
    Client client{context};
    const auto response = client.call(&ablate::v1::Sweeps::Stub::RetrySweep, *request);
    if (context.json) {
      context.print_json(response);
      return kExitOk;
    }
    context.out.line(fmt::format("{} requeued; {}", plural(response.retried(), "trial"),
                                 summary_text(response.sweep(), context.out)));
    print_dashboard_link(context, client, response.sweep().name());
    return kExitOk;
  };
}

}  // namespace

extern const Command kRetryCommand{
    .place = 140,
    .name = "retry",
    .summary = "Requeue failed and cancelled trials of a sweep, or completed ones with missing results",
    .example = "ablate retry msf-sharing --row r",
    .declare = declare_retry,
};

}  // namespace abl::cli
