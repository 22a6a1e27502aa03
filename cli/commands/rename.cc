// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "cli/client.h"
#include "cli/command.h"
#include "cli/words.h"

namespace abl::cli {
namespace {

Run declare_rename(CLI::App& app, Context& context) {
  auto request = std::make_shared<ablate::v1::RenameSweepRequest>();
  add_sweep(app, *request->mutable_sweep());
  app.add_option("NAME", *request->mutable_name(), "Its new name")->required()->type_name("");
  add_scheduler(app, context);
  return [&context, request]() -> int {
    Client client{context};
    const auto sweep = client.call(&ablate::v1::Sweeps::Stub::RenameSweep, *request);
    if (context.json)
      context.print_json(sweep);
    else
      context.out.line(summary_text(sweep, context.out));
    return kExitOk;
  };
}

}  // namespace

extern const Command kRenameCommand{
    .place = 146,
    .name = "rename",
    .summary = "Give a sweep another name",
    .example = "ablate rename msf-sharing msf-sharing-before-fix",
    .declare = declare_rename,
};

}  // namespace abl::cli
