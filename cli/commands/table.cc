// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/shown.h"
#include "cli/source.h"
#include "cli/table_renderer.h"

namespace abl::cli {
namespace {

Run declare_table(CLI::App& app, Context& context) {
  struct Flags {
    std::string sweep, format = "text";
  };
  auto flags = std::make_shared<Flags>();
  std::vector<std::string> names;
  for (const auto& [name, format] : kTableFormats) names.push_back(name);
  add_sweep(app, flags->sweep);
  const auto* format = add_choice(app, "--format", flags->format, names, "How to print it [text]",
                                  {{"tex", "latex"}, {"md", "markdown"}, {"txt", "text"}});
  add_source(app, context);
  return [&context, flags, format]() -> int {
    if (context.json && format->count() > 0 && flags->format != "json")
      throw Error{
          Code::kInvalidArgument,
          fmt::format("--json and --format {} exclude each other: expected one of them", flags->format)};
    const auto table = open_source(context)->table(flags->sweep);
    const auto named =
        std::ranges::find(kTableFormats, flags->format, [](const auto& entry) { return entry.first; });
    if (context.json)
      context.print_json(table);
    else
      context.out.write(render_table(shown(table, context.out), named->second, &context.out));
    return kExitOk;
  };
}

}  // namespace

extern const Command kTableCommand{
    .place = 150,
    .name = "table",
    .summary = "Print a sweep's table",
    .example = "ablate table msf-sharing --format latex > table.tex",
    .declare = declare_table,
};

}  // namespace abl::cli
