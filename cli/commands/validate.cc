// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/report_error.h"
#include "cli/shown.h"
#include "cli/sweep_checks.h"

namespace abl::cli {
namespace {

Run declare_validate(CLI::App& app, Context& context) {
  auto files = std::make_shared<std::vector<std::string>>();
  app.add_option("FILE", *files, "Sweep files, or tables of papers: msf/table-1")->required()->type_name("");
  auto scale = std::make_shared<std::string>();
  add_scale(app, *scale);
  add_source(app, context);
  return [&context, files, scale] {
    bool right = true;
    for (const auto& file : *files) {
      const auto verdict = validate(context, file, *scale);
      right = right && verdict.problems().empty();
      if (context.json) {
        context.print_json(verdict);
      } else if (verdict.problems().empty()) {
        context.out.line(verdict.seeds() == 0 && verdict.rows() == 1
                             ? fmt::format("{}: {} is valid: a search; 'ablate plan' counts its trials", file,
                                           verdict.sweep())
                             : fmt::format("{}: {} is valid: {}, {}, {}", file, verdict.sweep(),
                                           plural(verdict.rows(), "row"),
                                           seeds_text(verdict.seeds(), verdict.seeds_min()),
                                           plural(verdict.trials(), "distinct trial")));
      }
      if (!context.json)
        for (const auto& note : verdict.notes()) context.note(note);
      if (!context.json)
        for (const auto& problem : verdict.problems())
          say_error(context, problem_text(shown(problem, context.err)));
    }
    return right ? kExitOk : kExitUsage;
  };
}

}  // namespace

extern const Command kValidateCommand{
    .place = 30,
    .name = "validate",
    .summary = "Check sweep files; nothing is stored",
    .example = "ablate validate sweep.yaml",
    .success = "every file is valid",
    .declare = declare_validate,
};

}  // namespace abl::cli
