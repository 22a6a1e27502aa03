// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/run_target.h"
#include "cli/source.h"
#include "cli/words.h"

namespace abl::cli {
namespace {

using ablate::v1::LogText;

std::string json_line(std::uint32_t run, const LogText& piece) {
  const nlohmann::ordered_json line{{"run", run}, {"offset", piece.offset()}, {"text", piece.text()}};
  return line.dump(-1, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace);  // a log may hold any bytes
}

Run declare_logs(CLI::App& app, Context& context) {
  struct Flags {
    std::string target;
    bool follow = false;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("RUN", flags->target, kRunTarget)->required()->type_name("");
  app.add_flag("-f,--follow", flags->follow, "Keep printing until the run ends");
  add_source(app, context);
  return [&context, flags]() -> int {
    const auto source = open_source(context);
    const std::uint32_t run = run_of(*source, flags->target);
    bool silent = true;
    PrintableStream printable;
    source->log(run, flags->follow, [&](const LogText& piece) {
      silent = silent && piece.text().empty();
      if (context.json)
        context.out.line(json_line(run, piece));
      else
        context.out.write(context.out.interactive() ? printable.next(piece.text()) : piece.text());
    });
    if (!silent) return kExitOk;
    const auto summary = source->run(run).summary();
    context.note(fmt::format("run {} wrote no log{}", run,
                             summary.reason().empty()
                                 ? ""
                                 : fmt::format("; it is {}: {}", word(summary.state()), summary.reason())));
    return kExitOk;
  };
}

}  // namespace

extern const Command kLogsCommand{
    .place = 90,
    .name = "logs",
    .summary = "Print the log of a run",
    .example = "ablate logs 17 --follow\nablate logs msf-sharing/r/0",
    .declare = declare_logs,
};

}  // namespace abl::cli
