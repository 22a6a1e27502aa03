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

Run declare_rerun(CLI::App& app, Context& context) {
  auto request = std::make_shared<ablate::v1::RetrySweepRequest>();
  auto rows = std::make_shared<std::vector<std::string>>();
  add_sweep(app, *request->mutable_sweep());
  app.add_option("ROW", *rows, "Its rows whose completed trials run again")->required()->type_name("");
  add_scheduler(app, context);
  return [&context, request, rows]() -> int {
    request->mutable_rerun()->Assign(rows->begin(), rows->end());
    Client client{context};
    const auto response = client.call(&ablate::v1::Sweeps::Stub::RetrySweep, *request);
    if (response.retried() == 0)
      throw Error{Code::kFailedPrecondition,
                  fmt::format("no trial of {} is completed: 'ablate retry {}' runs failed ones again",
                              rows->size() == 1 ? "row " + rows->front() : "these rows", request->sweep())};
    if (context.json) {
      context.print_json(response);
      return kExitOk;
    }
    context.out.line(fmt::format("{} in place of completed ones; {}", plural(response.retried(), "new trial"),
                                 summary_text(response.sweep(), context.out)));
    print_dashboard_link(context, client, response.sweep().name());
    return kExitOk;
  };
}

}  // namespace

extern const Command kRerunCommand{
    .place = 142,
    .name = "rerun",
    .summary = "Run completed trials of rows again; other sweeps keep the results that they have",
    .example = "ablate rerun msf-sharing a r",
    .declare = declare_rerun,
};

}  // namespace abl::cli
