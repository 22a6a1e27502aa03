// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/nearest_name.h"
#include "cli/command.h"
#include "cli/source.h"
#include "cli/words.h"

namespace abl::cli {
namespace {

using ablate::v1::LogText;

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "SWEEP/ROW/SEED" taken apart.
struct Target {
  std::string sweep, row, seed;
};

Target split(const std::string& text) {
  const auto last = text.rfind('/');
  const auto middle = last == std::string::npos || last == 0 ? std::string::npos : text.rfind('/', last - 1);
  if (middle == std::string::npos)
    throw Error{Code::kInvalidArgument,
                fmt::format("'{}' is neither a run's number nor SWEEP/ROW/SEED", text)};
  return {text.substr(0, middle), text.substr(middle + 1, last - middle - 1), text.substr(last + 1)};
}

/// The newest run of a trial. Throws: Error{kNotFound} naming the nearest row, or the seeds that there are.
std::uint32_t newest_run(Source& source, const Target& target) {
  const auto detail = source.sweep(target.sweep);
  std::vector<std::string> rows;
  std::string seeds;
  for (const auto& trial : detail.trials()) {
    if (rows.empty() || rows.back() != trial.row()) rows.push_back(trial.row());
    if (trial.row() != target.row) continue;
    const std::string seed = fmt::format("{}", trial.seed());
    seeds += (seeds.empty() ? "" : ", ") + seed;
    if (seed != target.seed) continue;
    if (trial.run() != 0) return trial.run();
    throw Error{Code::kFailedPrecondition,
                fmt::format("{}/{}/{} has no run yet: it is {}{}", target.sweep, target.row, target.seed,
                            word(trial.state()), trial.reason().empty() ? "" : ", " + trial.reason())};
  }
  if (seeds.empty())
    throw Error{Code::kNotFound, fmt::format("sweep {} has no row '{}'{}", target.sweep, target.row,
                                             did_you_mean(target.row, rows))};
  throw Error{Code::kNotFound, fmt::format("row {} of sweep {} has no seed '{}': it has {}", target.row,
                                           target.sweep, target.seed, seeds)};
}

std::string json_line(std::uint32_t run, const LogText& piece) {
  const nlohmann::ordered_json line{{"run", run}, {"offset", piece.offset()}, {"text", piece.text()}};
  return line.dump(-1, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace);  // a log may hold any bytes
}

}  // namespace

Run declare_logs(CLI::App& app, Context& context) {
  struct Flags {
    std::string target;
    bool follow = false;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("RUN", flags->target, "A run's number, or SWEEP/ROW/SEED for the newest run of a trial")
      ->required()
      ->type_name("");
  app.add_flag("-f,--follow", flags->follow, "Go on until the run has ended");
  add_source(app, context);
  return [&context, flags]() -> int {
    const auto source = open_source(context);
    const auto given = number<std::uint32_t>(flags->target);
    const std::uint32_t run = given ? *given : newest_run(*source, split(flags->target));
    bool silent = true;
    source->log(run, flags->follow, [&](const LogText& piece) {
      silent = silent && piece.text().empty();
      if (context.json)
        context.out.line(json_line(run, piece));
      else
        context.out.write(piece.text());
    });
    if (silent) context.note(fmt::format("run {} has said nothing but its metrics", run));
    return kExitOk;
  };
}

}  // namespace abl::cli
