// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/new_file.h"
#include "base/stop_on_signals.h"
#include "cli/command.h"
#include "cli/event_writer.h"
#include "cli/format.h"
#include "cli/parquet.h"
#include "cli/point_writer.h"
#include "cli/report.h"
#include "cli/source.h"

namespace abl::cli {
namespace {

namespace fs = std::filesystem;

struct ExportFlags {
  std::string sweep, format = "csv", output;
};

struct Exported {
  std::uint64_t points = 0;
  std::size_t runs = 0;
};

/// Every block of a sweep, until Ctrl-C. Throws: Error{kCancelled}.
std::size_t each_block(Context& context, Source& source, const ExportFlags& flags,
                       const std::function<void(const ablate::v1::ExportBlock&)>& sink) {
  static const std::atomic<bool> never{false};
  const std::atomic<bool>& stopped = flags.output.empty() ? never : stop_on_signals();
  const auto trials = source.rows(flags.sweep, 0, 1).summary().trials();
  Progress progress{context.err, "exporting " + flags.sweep, "runs",
                    static_cast<double>(trials.total() - trials.queued())};
  std::set<std::uint32_t> runs;
  source.export_points(flags.sweep, [&](const ablate::v1::ExportBlock& block) {
    if (stopped) throw Error{Code::kCancelled, "interrupted: nothing was written"};
    sink(block);
    runs.insert(block.run());
    if (!flags.output.empty()) progress.update(static_cast<double>(runs.size()));
  });
  if (runs.size() > trials.completed())
    context.note(fmt::format(
        "{} of the {} runs {} of trials that have not completed: 'ablate import' would take their "
        "points for results",
        runs.size() - trials.completed(), runs.size(), runs.size() - trials.completed() == 1 ? "is" : "are"));
  return runs.size();
}

/// CSV or JSON Lines. `file` empty: standard output.
Exported export_lines(Context& context, Source& source, const ExportFlags& flags, const fs::path& file,
                      PointFormat format) {
  PointWriter writer{file, format};
  const auto runs =
      each_block(context, source, flags, [&](const auto& block) { writer.write(flags.sweep, block); });
  writer.finish();
  return {writer.points(), runs};
}

Exported export_events(Context& context, Source& source, const ExportFlags& flags) {
  EventWriter writer{flags.output};
  const auto runs =
      each_block(context, source, flags, [&](const auto& block) { writer.write(flags.sweep, block); });
  writer.finish();
  return {writer.points(), runs};
}

/// By way of CSV beside it, which goes.
Exported export_parquet(Context& context, Source& source, const ExportFlags& flags) {
  const fs::path csv = flags.output + fmt::format(".{}.csv", ::getpid());
  struct Remove {
    const fs::path& file;
    ~Remove() {
      std::error_code ignored;
      fs::remove(file, ignored);
    }
  } const remove{csv};
  const Exported exported = export_lines(context, source, flags, csv, PointFormat::kCsv);
  NewFile file{flags.output, {.ending = fmt::format(".{}.part", ::getpid()), .mode = 0666}};
  csv_to_parquet(csv, file.part());
  file.publish();
  return exported;
}

void expect_output(const ExportFlags& flags) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(flags.output, ignored);
  if (flags.format != "tensorboard" && is_folder)
    throw Error{Code::kInvalidArgument,
                fmt::format("cannot write {}: it is a folder; expected a file", flags.output)};
  if (flags.output.empty() && (flags.format == "parquet" || flags.format == "tensorboard"))
    throw Error{Code::kInvalidArgument, fmt::format("--format {} writes a {}: expected -o {}", flags.format,
                                                    flags.format == "parquet" ? "file" : "folder",
                                                    flags.format == "parquet" ? "FILE" : "FOLDER")};
}

int export_report(Context& context, Source& source, const ExportFlags& flags) {
  const std::string page = report_html(source, flags.sweep);
  if (flags.output.empty()) {
    context.out.write(page);
    return kExitOk;
  }
  write_file_atomically(flags.output, page);
  if (context.json)
    context.out.line(nlohmann::ordered_json{{"file", flags.output}, {"bytes", page.size()}}.dump());
  else
    context.out.line(fmt::format("{}: a report of {}", flags.output, flags.sweep));
  return kExitOk;
}

Run declare_export(CLI::App& app, Context& context) {
  auto flags = std::make_shared<ExportFlags>();
  add_sweep(app, flags->sweep);
  const auto* format = add_choice(
      app, "--format", flags->format, {"csv", "jsonl", "parquet", "tensorboard", "html"},
      "csv; jsonl: an object a line; parquet (by pyarrow); tensorboard: a folder of event files; html: a "
      "page with table, curves and configurations [csv]");
  app.add_option("-o,--output,--out", flags->output,
                 "File, or folder, to write, created once complete [standard output]")
      ->type_name("FILE");
  add_source(app, context);
  return [&context, flags, format]() -> int {
    if (context.json && flags->output.empty() && format->count() > 0 &&
        (flags->format == "csv" || flags->format == "html"))
      throw Error{
          Code::kInvalidArgument,
          fmt::format("--json and --format {} exclude each other: expected one of them", flags->format)};
    expect_output(*flags);
    const auto source = open_source(context);
    if (flags->format == "html") return export_report(context, *source, *flags);
    const bool to_file = !flags->output.empty();
    const bool as_json = flags->format == "jsonl" || (context.json && !to_file);
    const Exported exported = flags->format == "parquet" ? export_parquet(context, *source, *flags)
                              : flags->format == "tensorboard"
                                  ? export_events(context, *source, *flags)
                                  : export_lines(context, *source, *flags, flags->output,
                                                 as_json ? PointFormat::kJsonLines : PointFormat::kCsv);
    if (!to_file) return kExitOk;
    if (context.json)
      context.out.line(nlohmann::ordered_json{
          {"file", flags->output}, {"points", exported.points}, {"runs", exported.runs}}
                           .dump());
    else
      context.out.line(fmt::format("{}: {} of {}", flags->output, plural(exported.points, "point"),
                                   plural(exported.runs, "run")));
    return kExitOk;
  };
}

}  // namespace

extern const Command kExportCommand{
    .place = 160,
    .name = "export",
    .summary = "Write every metric point of a sweep, for other tools, or a report of it",
    .example =
        "ablate export msf-sharing --format csv -o points.csv\n"
        "ablate export msf-sharing --format tensorboard -o events && tensorboard --logdir events\n"
        "ablate export msf-sharing --format html -o report.html",
    .declare = declare_export,
};

}  // namespace abl::cli
