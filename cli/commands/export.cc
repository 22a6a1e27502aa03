// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/point_writer.h"
#include "cli/source.h"

namespace abl::cli {
namespace {

Run declare_export(CLI::App& app, Context& context) {
  struct Flags {
    std::string sweep, format = "csv", output;
  };
  auto flags = std::make_shared<Flags>();
  add_sweep(app, flags->sweep);
  const auto* format =
      add_choice(app, "--format", flags->format, {"csv", "jsonl"}, "jsonl: one JSON object a point [csv]");
  app.add_option("-o,--output", flags->output, "File to write, created once complete [standard output]")
      ->type_name("FILE");
  add_source(app, context);
  return [&context, flags, format]() -> int {
    if (context.json && flags->output.empty() && format->count() > 0 && flags->format == "csv")
      throw Error{Code::kInvalidArgument, "--json and --format csv exclude each other: expected one of them"};
    if (std::error_code ignored; std::filesystem::is_directory(flags->output, ignored))
      throw Error{Code::kInvalidArgument,
                  fmt::format("cannot write {}: it is a folder; expected a file", flags->output)};
    const auto source = open_source(context);
    const auto trials = source->rows(flags->sweep, 0, 1).summary().trials();
    const auto expected = trials.total() - trials.queued();
    const bool to_file = !flags->output.empty();
    const bool as_json = flags->format == "jsonl" || (context.json && !to_file);

    PointWriter writer{flags->output, as_json ? PointFormat::kJsonLines : PointFormat::kCsv};
    std::set<std::uint32_t> runs;
    {
      Progress progress{context.err, "exporting " + flags->sweep, "runs", static_cast<double>(expected)};
      source->export_points(flags->sweep, [&](const ablate::v1::ExportBlock& block) {
        writer.write(flags->sweep, block);
        runs.insert(block.run());
        if (to_file) progress.update(static_cast<double>(runs.size()));
      });
    }
    writer.finish();
    if (!to_file) return kExitOk;
    if (context.json)
      context.out.line(
          nlohmann::ordered_json{{"file", flags->output}, {"points", writer.points()}, {"runs", runs.size()}}
              .dump());
    else
      context.out.line(fmt::format("{}: {} of {}", flags->output, plural(writer.points(), "point"),
                                   plural(runs.size(), "run")));
    return kExitOk;
  };
}

}  // namespace

extern const Command kExportCommand{
    .place = 160,
    .name = "export",
    .summary = "Write every metric point of a sweep",
    .example = "ablate export msf-sharing --format csv -o points.csv",
    .declare = declare_export,
};

}  // namespace abl::cli
