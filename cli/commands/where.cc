// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/run_target.h"
#include "cli/shown.h"
#include "cli/source.h"
#include "cli/words.h"

namespace abl::cli {
namespace {

namespace fs = std::filesystem;
using ablate::v1::RunDetail;

std::optional<std::uint64_t> size_here(const std::string& file) {
  std::error_code absent;
  if (!fs::is_regular_file(file, absent)) return std::nullopt;
  const auto size = fs::file_size(file, absent);
  return absent ? std::nullopt : std::optional<std::uint64_t>{size};
}

/// 'it'\''s': one word of a shell.
std::string quoted(const std::string& text) {
  if (!text.empty() &&
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@") ==
          std::string::npos)
    return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return word + "'";
}

struct Place {
  bool is_here = false;  // the folder is, on this machine
  std::string command;   // that leads there; empty where there is no folder
};

Place place_of(const RunDetail& run) {
  if (run.directory().empty()) return {};
  std::error_code absent;
  if (fs::is_directory(run.directory(), absent)) return {true, "cd " + quoted(run.directory())};
  return {false, fmt::format("ssh -t -- {} {}", quoted(run.summary().host()),
                             quoted(fmt::format("cd {} && exec $SHELL", quoted(run.directory()))))};
}

/// What it took of its machine, as far as that is known: "peak memory 1.2 GiB, …".
std::string resources_text(const ablate::v1::ResourceUse& use) {
  std::vector<std::string> facts;
  const auto percent = [](double share) { return fmt::format("{:.1f} %", 100 * share); };
  if (use.has_peak_memory_bytes()) facts.push_back("peak memory " + format_bytes(use.peak_memory_bytes()));
  if (use.has_cpu_cores()) facts.push_back(fmt::format("CPU {:.2f} cores on average", use.cpu_cores()));
  if (use.has_gpu()) facts.push_back(fmt::format("GPU {} on average", percent(use.gpu())));
  if (use.has_peak_gpu_memory_bytes())
    facts.push_back("peak GPU memory " + format_bytes(use.peak_gpu_memory_bytes()));
  if (use.has_data_wait())
    facts.push_back(fmt::format("waited for data {} of the training", percent(use.data_wait())));
  return fmt::format("{} ({} sample{})", fmt::join(facts, ", "), use.samples(),
                     use.samples() == 1 ? "" : "s");
}

/// The same as numbers; what is not known is null.
nlohmann::ordered_json json_of(const ablate::v1::ResourceUse& use) {
  const auto known = [](bool has, auto value) {
    return has ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
  };
  return {{"samples", use.samples()},
          {"seconds", use.seconds()},
          {"peak_memory_bytes", known(use.has_peak_memory_bytes(), use.peak_memory_bytes())},
          {"cpu_cores", known(use.has_cpu_cores(), use.cpu_cores())},
          {"gpu", known(use.has_gpu(), use.gpu())},
          {"peak_gpu_memory_bytes", known(use.has_peak_gpu_memory_bytes(), use.peak_gpu_memory_bytes())},
          {"read_bytes", known(use.has_read_bytes(), use.read_bytes())},
          {"written_bytes", known(use.has_written_bytes(), use.written_bytes())},
          {"data_wait", known(use.has_data_wait(), use.data_wait())},
          {"least_free_bytes", known(use.has_least_free_bytes(), use.least_free_bytes())}};
}

std::string text_of(const RunDetail& run, const Place& place) {
  const auto& summary = run.summary();
  std::string text = fmt::format("run {}: {}, trial {}, attempt {}, worker {} on {}{}\n", summary.id(),
                                 word(summary.state()), summary.trial(), summary.attempt(), summary.worker(),
                                 summary.host(), place.is_here ? ", which is here" : "");
  for (const auto& part : summary.parts())
    text += fmt::format("{:<13}worker {} on {}, {} slot{}\n",
                        &part == &*summary.parts().begin() ? "together with" : "", part.worker(), part.host(),
                        part.slots(), part.slots() == 1 ? "" : "s");
  text += fmt::format("folder       {}\n",
                      run.directory().empty() ? "none: its program has not started" : run.directory());
  const char* heading = "checkpoints";
  for (const auto& checkpoint : run.checkpoints()) {
    const auto size = size_here(checkpoint.path());
    text += fmt::format("{:<13}step {:<8} {:>10}  {}\n", heading, checkpoint.step(),
                        size ? format_bytes(*size) : "not here", checkpoint.path());
    heading = "";
  }
  if (run.checkpoints().empty()) text += "checkpoints  none\n";
  heading = "weights of";
  for (const auto& source : run.sources()) {
    text += fmt::format("{:<13}{}/{}/{}  {}\n", heading, source.sweep(), source.row(), source.seed(),
                        source.run() == 0 ? fmt::format("{}, {}", source.take(), source.state())
                                          : fmt::format("{}: run {}, step {}, SHA-256 {:.12}…", source.take(),
                                                        source.run(), source.step(), source.sha256()));
    heading = "";
  }
  text += fmt::format("log          {}\n",
                      run.log_bytes() == 0
                          ? "empty"
                          : fmt::format("{}: ablate logs {}", format_bytes(run.log_bytes()), summary.id()));
  if (run.has_resources()) text += "resources    " + resources_text(run.resources()) + "\n";
  heading = "shown by";
  for (const auto& row : summary.rows()) {
    text += fmt::format("{:<13}{}/{}/{}{}\n", heading, row.sweep(), row.row(), row.seed(),
                        row.label().empty() || row.label() == row.row() ? "" : "  " + row.label());
    heading = "";
  }
  if (summary.rows().empty()) text += "shown by     no sweep\n";
  if (!place.command.empty()) text += "go there     " + place.command + "\n";
  return text;
}

nlohmann::ordered_json json_of(const RunDetail& run, const Place& place) {
  const auto& summary = run.summary();
  nlohmann::ordered_json checkpoints = nlohmann::json::array(), sweeps = nlohmann::json::array();
  for (const auto& checkpoint : run.checkpoints()) {
    const auto size = size_here(checkpoint.path());
    checkpoints.push_back({{"step", checkpoint.step()},
                           {"host", checkpoint.host()},
                           {"path", checkpoint.path()},
                           {"here", size.has_value()},
                           {"bytes", size ? nlohmann::json(*size) : nlohmann::json()}});
  }
  nlohmann::ordered_json sources = nlohmann::json::array();
  for (const auto& source : run.sources())
    sources.push_back({{"name", source.name()},
                       {"take", source.take()},
                       {"sweep", source.sweep()},
                       {"row", source.row()},
                       {"seed", source.seed()},
                       {"trial", source.trial()},
                       {"run", source.run()},
                       {"step", source.step()},
                       {"sha256", source.sha256()}});
  for (const auto& row : summary.rows())
    sweeps.push_back(
        {{"sweep", row.sweep()}, {"row", row.row()}, {"label", row.label()}, {"seed", row.seed()}});
  nlohmann::ordered_json parts = nlohmann::json::array();
  for (const auto& part : summary.parts())
    parts.push_back({{"worker", part.worker()}, {"host", part.host()}, {"slots", part.slots()}});
  return {{"run", summary.id()},
          {"trial", summary.trial()},
          {"attempt", summary.attempt()},
          {"state", word(summary.state())},
          {"worker", summary.worker()},
          {"host", summary.host()},
          {"parts", parts},
          {"directory", run.directory()},
          {"here", place.is_here},
          {"checkpoints", checkpoints},
          {"sources", sources},
          {"log_bytes", run.log_bytes()},
          {"resources", run.has_resources() ? json_of(run.resources()) : nlohmann::ordered_json()},
          {"sweeps", sweeps},
          {"command", place.command}};
}

Run declare_where(CLI::App& app, Context& context) {
  auto target = std::make_shared<std::string>();
  app.add_option("RUN", *target, kRunTarget)->required()->type_name("");
  add_source(app, context);
  return [&context, target]() -> int {
    const auto source = open_source(context);
    RunDetail run = source->run(run_of(*source, *target));
    if (!context.json) run = shown(run, context.out);
    const Place place = place_of(run);
    if (context.json)
      context.out.line(json_of(run, place).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    else
      context.out.write(text_of(run, place));
    return kExitOk;
  };
}

}  // namespace

extern const Command kWhereCommand{
    .place = 95,
    .name = "where",
    .summary = "Where a run's files are, what it took of its machine, and which sweeps show it",
    .example = "ablate where 17\nablate where msf-sharing/r/0",
    .declare = declare_where,
};

}  // namespace abl::cli
