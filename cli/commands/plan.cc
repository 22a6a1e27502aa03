// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/plan_text.h"
#include "cli/shown.h"
#include "cli/sweep_checks.h"

namespace abl::cli {
namespace {

Run declare_plan(CLI::App& app, Context& context) {
  auto file = std::make_shared<std::string>();
  app.add_option("FILE", *file, "Sweep file, or a table of a paper: msf/table-1")->required()->type_name("");
  auto scale = std::make_shared<std::string>();
  add_scale(app, *scale);
  auto flags = std::make_shared<MeasureFlags>();
  flags->declare(app);
  add_source(app, context);
  return [&context, file, scale, flags]() -> int {
    const auto text = read_sweep_file(*file, *scale);
    const auto sweep =
        plan(context, text,
             flags->measure ? measure(context, text, *flags) : std::vector<ablate::v1::Calibration>{});
    if (context.json)
      context.print_json(sweep);
    else
      context.out.write(plan_text(shown(sweep, context.out), context.out));
    return kExitOk;
  };
}

}  // namespace

extern const Command kPlanCommand{
    .place = 40,
    .name = "plan",
    .summary = "Show what a sweep would run: rows, params, FLOPs, memory, time, what is stored",
    .example = "ablate plan sweep.yaml\nablate plan msf/table-1 --measure --data imagenet-1k=/data/imagenet",
    .declare = declare_plan,
};

}  // namespace abl::cli
