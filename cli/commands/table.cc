// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/shown.h"
#include "cli/source.h"
#include "cli/table_renderer.h"

namespace abl::cli {
namespace {

constexpr std::uint32_t kMostOnATerminal = 1000;  // rows

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
    const auto named =
        std::ranges::find(kTableFormats, flags->format, [](const auto& entry) { return entry.first; });
    const bool is_for_eyes =
        context.out.interactive() && !context.json && named->second == TableFormat::kText;
    const auto table = open_source(context)->table(flags->sweep, is_for_eyes ? kMostOnATerminal : 0);
    if (context.json)
      context.print_json(table);
    else
      context.out.write(render_table(shown(table, context.out), named->second, &context.out));
    if (is_for_eyes && table.left_out() > 0)
      context.out.line(fmt::format("{} not shown: a pipe, a file or --format csv has all",
                                   plural(table.left_out(), "more row")));
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
