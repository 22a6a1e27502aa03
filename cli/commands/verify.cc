// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/command.h"
#include "cli/run_target.h"
#include "cli/source.h"
#include "cli/sweep_verify.h"
#include "protocol/command_line.h"
#include "protocol/number.h"
#include "protocol/trainer_program.h"

namespace abl::cli {
namespace {

using ablate::v1::Checkpoint;
using ablate::v1::RunDetail;
using nlohmann::json;

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

struct VerifyFlags {
  std::string target;
  bool from_start = false;
  Sample sample;
};

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
  compute_as(run, flags.sample.files, command);
  return command;
}

Run declare_verify(CLI::App& app, Context& context) {
  auto flags = std::make_shared<VerifyFlags>();
  auto* run = app.add_option("RUN", flags->target, kRunTarget)->type_name("");
  auto* sweep =
      app.add_option("--sweep", flags->sample.sweep, "Train completed trials of a sweep again instead")
          ->type_name("SWEEP")
          ->excludes(run);
  app.add_option("--sample", flags->sample.trials, "So many trials of the sweep, chosen by --seed [3]")
      ->check(whole_number(1, 100'000))
      ->type_name("N")
      ->needs(sweep);
  app.add_option("--seed", flags->sample.seed, "Of the choice: the same seed, the same trials [0]")
      ->check(whole_number(0, 1'000'000'000))
      ->type_name("N")
      ->needs(sweep);
  app.add_flag("--from-start", flags->from_start,
               "Replay from the first step instead of the second newest checkpoint")
      ->excludes(sweep);
  app.add_option("--data-root", flags->sample.files.data_root, "Folder of the data set [as on its worker]")
      ->type_name("FOLDER");
  app.add_option("--weights", flags->sample.files.weights,
                 "Location of weights that its recipe names [as on its worker]; repeatable")
      ->type_name("NAME=FILE");
  add_source(app, context);
  return [&context, flags]() -> int {
    const auto source = open_source(context);
    if (!flags->sample.sweep.empty()) return verify_sample(context, *source, flags->sample);
    if (flags->target.empty())
      throw Error{Code::kInvalidArgument, "expected a run (a number, or SWEEP/ROW/SEED), or --sweep SWEEP"};
    auto command = command_of(*source, *flags);
    command.json = context.json;
    protocol::become_trainer(command.arguments());
  };
}

}  // namespace

extern const Command kVerifyCommand{
    .place = 100,
    .name = "verify",
    .summary = "Run a run's end, or a sample of a sweep, again and check that it is bit-identical",
    .example =
        "ablate verify 17\nablate verify msf-sharing/r/0 --from-start\nablate verify --sweep msf-sharing "
        "--sample 2",
    .success = "bit-identical",
    .failure = "not bit-identical",
    .declare = declare_verify,
};

}  // namespace abl::cli
