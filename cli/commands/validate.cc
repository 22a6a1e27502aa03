// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/judge.h"

namespace abl::cli {

namespace {

/// A file that cannot be read is a problem of that file: the others are judged all the same.
ablate::v1::ValidateResponse judge(const Context& context, const std::string& file) {
  ablate::v1::SweepFile sweep;
  try {
    sweep = read_sweep_file(file);
  } catch (const Error& error) {
    ablate::v1::ValidateResponse verdict;
    verdict.add_problems()->set_message(error.what());
    return verdict;
  }
  return validate(context, sweep);
}

}  // namespace

Run declare_validate(CLI::App& app, Context& context) {
  auto files = std::make_shared<std::vector<std::string>>();
  app.add_option("FILE", *files, "Sweep files")->required()->type_name("");
  add_source(app, context);
  return [&context, files] {
    bool right = true;
    for (const auto& file : *files) {
      const auto verdict = judge(context, file);
      right = right && verdict.problems().empty();
      if (context.json) {
        context.print_json(verdict);
      } else if (verdict.problems().empty()) {
        context.out.line(fmt::format("{}: {} is right: {}, {}, {}", file, verdict.sweep(),
                                     plural(verdict.rows(), "row"), plural(verdict.seeds(), "seed"),
                                     plural(verdict.trials(), "distinct trial")));
      }
      if (!context.json)
        for (const auto& problem : verdict.problems()) context.err.line(problem_text(problem));
    }
    return right ? kExitOk : kExitUsage;
  };
}

}  // namespace abl::cli
