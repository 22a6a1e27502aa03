// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/named_path.h"
#include "cli/command.h"
#include "cli/run_target.h"
#include "cli/source.h"
#include "config/data/data_sets.h"
#include "protocol/command_line.h"
#include "protocol/number.h"
#include "protocol/trainer_program.h"

namespace abl::cli {
namespace {

using ablate::v1::Checkpoint;
using ablate::v1::RunDetail;
using nlohmann::json;

/// A file in memory that the program which takes our place can read too. Returns: its path.
std::string file_in_memory(const char* name, const std::string& text) {
  const int descriptor = ::memfd_create(name, 0);
  if (descriptor < 0) throw system_error("cannot create a file in memory", errno);
  for (std::size_t at = 0; at < text.size();) {
    const auto written = ::write(descriptor, text.data() + at, text.size() - at);
    if (written < 0 && errno != EINTR) throw system_error("cannot write a file in memory", errno);
    if (written > 0) at += static_cast<std::size_t>(written);
  }
  return fmt::format("/proc/self/fd/{}", descriptor);
}

/// Those of the run that lie on this machine, newest first.
std::vector<Checkpoint> checkpoints_here(const RunDetail& run) {
  std::vector<Checkpoint> found;
  std::error_code ignored;
  for (const auto& checkpoint : run.checkpoints())
    if (std::filesystem::is_regular_file(checkpoint.path(), ignored)) found.push_back(checkpoint);
  std::ranges::sort(found, std::greater{}, [](const auto& checkpoint) { return checkpoint.step(); });
  if (found.empty())
    throw Error{Code::kNotFound, fmt::format("run {} has no checkpoint on this machine: it ran on {} in {}",
                                             run.summary().id(), run.summary().host(), run.directory())};
  return found;
}

/// {"20": {"train/loss": 1.5, "val/loss": "Infinity"}, …}
std::string points_of(const ablate::v1::GetMetricsResponse& metrics) {
  json points = json::object();
  for (const auto& entry : metrics.series())
    for (int i = 0; i < entry.series().steps_size(); ++i)
      points[std::to_string(entry.series().steps(i))][entry.series().name()] =
          protocol::json_number(entry.series().values(i));
  return points.dump();
}

/// The flags by which the trainer computes as the run did. What a run of several ranks says is its first
/// rank's: the share of the threads, and its own GPU.
void add_machine(const json& environment, protocol::VerifyCommand& command) {
  if (!environment.is_object()) return;
  const int ranks = environment.value("ranks", 1);
  command.threads = environment.value("threads", 0) * ranks;
  command.device = environment.value("device", "");
  if (ranks > 1) command.device = command.device.substr(0, command.device.find(':'));
  command.deterministic = command.device != "cpu" && environment.value("deterministic", false);
}

struct VerifyFlags {
  std::string target, data_root;
  std::vector<std::string> weights;
  bool from_start = false;
};

/// What the worker kept of how it started the run, where that is on this machine.
json launch_record(const RunDetail& run) {
  const auto file = std::filesystem::path{run.directory()} / "launch.json";
  std::error_code ignored;
  if (run.directory().empty() || !std::filesystem::is_regular_file(file, ignored)) return json::object();
  auto record = json::parse(read_file(file), nullptr, false);
  return record.is_object() ? record : json::object();
}

/// Where the worker had it. Throws: Error with the flag that names another place, where it is gone.
std::string still_there(const std::string& path, const std::string& what, const char* flag) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    throw Error{
        Code::kNotFound,
        fmt::format("{} was at {} during the run and no longer exists: name it with {}", what, path, flag)};
  return path;
}

/// Data and weights: those that the flags name, otherwise those that the run's worker had.
void add_files(const RunDetail& run, const json& config, const VerifyFlags& flags,
               protocol::VerifyCommand& command) {
  const auto set = config.value(json::json_pointer{"/data/name"}, "");
  if (const auto* known = config::find_data_set(set); known && known->embedded && !flags.data_root.empty())
    throw Error{
        Code::kInvalidArgument,
        fmt::format("--data-root: run {} trained on {}, which the trainer draws itself: no folder is read",
                    run.summary().id(), set)};
  const json record = launch_record(run);
  const std::string data = record.value("data", "");
  if (!flags.data_root.empty())
    command.data_root = flags.data_root;
  else if (!data.empty())
    command.data_root = still_there(data, "the data", "--data-root FOLDER");
  command.weights = parse_named_paths(kWeightsFlag, flags.weights);
  const json recorded = record.value("weights", json::object());
  for (const auto& [name, file] : recorded.items())
    if (!command.weights.contains(name))
      command.weights[name] = still_there(
          file.get<std::string>(), fmt::format("the file of the weights {}", name), "--weights NAME=FILE");
}

protocol::VerifyCommand command_of(Source& source, const VerifyFlags& flags) {
  const auto id = run_of(source, flags.target);
  const auto run = source.run(id);
  const auto config = json::parse(run.config_json());
  if (config.contains("argv"))
    throw Error{Code::kFailedPrecondition,
                fmt::format("run {} ran a custom command: only runs of ablate-trainer can be verified", id)};
  const auto checkpoints = checkpoints_here(run);
  const auto& to = checkpoints.front();
  protocol::VerifyCommand command{.config = file_in_memory("config", run.config_json()),
                                  .to = to.path(),
                                  .points = file_in_memory("points", points_of(source.metrics(id)))};
  const auto from =
      std::ranges::find_if(checkpoints, [&](const auto& each) { return each.step() < to.step(); });
  if (!flags.from_start && from != checkpoints.end()) command.from = from->path();
  try {
    add_machine(json::parse(run.environment_json(), nullptr, false), command);
  } catch (const json::exception& error) {
    throw Error{Code::kDataLoss, fmt::format("run {}: invalid stored environment: {}", id, error.what())};
  }
  add_files(run, config, flags, command);
  return command;
}

Run declare_verify(CLI::App& app, Context& context) {
  auto flags = std::make_shared<VerifyFlags>();
  app.add_option("RUN", flags->target, kRunTarget)->required()->type_name("");
  app.add_flag("--from-start", flags->from_start,
               "Replay from the first step instead of the second newest checkpoint");
  app.add_option("--data-root", flags->data_root, "Folder of the data set [as on its worker]")
      ->type_name("FOLDER");
  app.add_option("--weights", flags->weights,
                 "Location of weights that its recipe names [as on its worker]; repeatable")
      ->type_name("NAME=FILE");
  add_source(app, context);
  return [&context, flags]() -> int {
    auto command = command_of(*open_source(context), *flags);
    command.json = context.json;
    protocol::become_trainer(command.arguments());
  };
}

}  // namespace

extern const Command kVerifyCommand{
    .place = 100,
    .name = "verify",
    .summary = "Replay the end of a run and check that it is bit-identical",
    .example = "ablate verify 17\nablate verify msf-sharing/r/0 --from-start",
    .success = "bit-identical",
    .failure = "not bit-identical",
    .declare = declare_verify,
};

}  // namespace abl::cli
