// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "base/command_line.h"
#include "base/error.h"
#include "base/file.h"
#include "base/stop_on_signals.h"
#include "config/recipe/most_ranks.h"
#include "config/tasks.h"
#include "protocol/checkpoint_files.h"
#include "protocol/command_line.h"
#include "protocol/events.h"
#include "protocol/metrics.h"
#include "protocol/probes.h"
#include "worker/trainer/commands/commands.h"
#include "worker/trainer/commands/probing.h"
#include "worker/trainer/commands/rank_runs.h"
#include "worker/trainer/commands/run_flags.h"
#include "worker/trainer/commands/terminal_events.h"
#include "worker/trainer/device/failure.h"
#include "worker/trainer/ranks/batch_share.h"
#include "worker/trainer/tasks/model_factory.h"
#include "worker/trainer/training/training.h"

namespace abl::commands {

namespace flag = protocol::flag;
namespace metric = protocol::metric;

namespace {

constexpr const char* kNone = "none";  // of --keep-best

std::unique_ptr<protocol::Events> events_for(bool json, const RankFlags& ranks) {
  if (ranks.rank > 0) return std::make_unique<protocol::QuietEvents>();
  if (json || ranks.is_rank() || !isatty(STDOUT_FILENO))
    return std::make_unique<protocol::JsonLines>(
        &ask_to_stop);  // what nobody hears of would be lost at the next kill
  return std::make_unique<TerminalEvents>();
}

/// A trial that is refused leaves nothing behind: to be called when it is taken.
void make_run_folder(const std::filesystem::path& folder) {
  try {
    make_folder(folder);
  } catch (const Error& error) {
    device::throw_as_disk_fault(error, 0);
  }
}

/// A folder of another run would keep some of its checkpoints and lose others.
void expect_unused(const std::filesystem::path& folder) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator{folder, none})
    if (const std::string name = entry.path().filename(); name.ends_with(protocol::kCheckpointEnding))
      throw Error{
          Code::kAlreadyExists,
          fmt::format("--run-dir {} contains {} of an earlier run: resume with --resume, or pass an empty "
                      "folder",
                      folder.string(), name)};
}

/// What stands for the flags that were not given, and whether those that were go with the trial.
/// Throws: Error{kInvalidArgument}.
void settle_flags(training::TrainingOptions& options) {
  const auto& task = config::task_of(options.trial.task.kind);
  if (options.keep_best.empty()) options.keep_best = metric::of(metric::kVal, task.metrics.front());
  const auto name = options.keep_best.substr(options.keep_best.find('/') + 1);
  if (options.keep_best != kNone && std::ranges::find(task.metrics, name) == task.metrics.end())
    throw Error{Code::kInvalidArgument,
                fmt::format("--keep-best {}: a task of kind {} has {}", options.keep_best, name_of(task.kind),
                            fmt::join(task.metrics, ", "))};
  if (options.keep_best.starts_with(metric::of(metric::kAverage, "")) && options.trial.recipe.ema == 0)
    throw Error{Code::kInvalidArgument, fmt::format("--keep-best {}: recipe.ema is 0, so there is no running "
                                                    "average to evaluate",
                                                    options.keep_best)};
}

/// What --keep-best may say, of whichever task.
std::vector<std::string> kept_metrics() {
  std::vector<std::string> all;
  for (const char* evaluated : {metric::kVal, metric::kAverage})
    for (const auto& task : config::tasks())
      for (const auto value : task.metrics)
        if (auto name = metric::of(evaluated, value); std::ranges::find(all, name) == all.end())
          all.push_back(std::move(name));
  all.emplace_back(kNone);
  return all;
}

int train(RunFlags& flags, const RankFlags& ranks, const std::vector<protocol::ProbeRequest>& probes,
          protocol::Events& events) {
  using Status = protocol::End::Status;
  auto& options = flags.options;
  if (ranks.starts_ranks()) {
    try {
      flags.read_trial();
      settle_flags(options);
      if (!probes.empty()) tasks::expect_classifies(options.trial, flag::kProbe);
      const auto batch = config::known_batch(options.trial);
      const int parts = options.trial.recipe.accumulate;
      if (ranks.ranks > config::most_ranks(batch, parts))
        ranks::share_batch(0, ranks.ranks, batch, parts);  // says why
      if (options.resume.empty()) expect_unused(options.run_dir);
    } catch (const Error& error) {
      return device::fail(events, error);
    }
    const int code = train_with_ranks(ranks, options.device, events);
    protocol::remove_unfinished_checkpoints(options.run_dir);  // of a rank that was killed
    return code;
  }
  const auto& stop = stop_on_signals();
  config::TrialConfig trial;
  std::shared_ptr<ranks::RankGroup> group;  // it goes after the end was said: the others notice when it does
  try {
    flags.read();
    settle_flags(options);
    if (!probes.empty()) tasks::expect_classifies(options.trial, flag::kProbe);
    if (options.resume.empty() && !ranks.is_rank()) expect_unused(options.run_dir);
    trial = options.trial;
    take_place(ranks, options);
    group = options.ranks;
    const auto run_dir = options.run_dir;
    auto probed = options;
    probed.ranks = std::make_shared<ranks::RankGroup>();  // the first rank probes alone
    const bool probes_here = ranks.rank <= 0;
    auto training = std::make_unique<training::Training>(std::move(options), events);
    make_run_folder(run_dir);
    bool complete = training->run(stop);
    training.reset();  // its memory is for the probes
    if (complete && probes_here) complete = probe_trained(probed, probes, events, stop);
    const char* const why = complete         ? ""
                            : events.heard() ? "stopped on request"
                                             : "standard output takes no more events";
    events.end(complete ? Status::kCompleted : Status::kStopped, why, true);
    return kExitOk;
  } catch (const Error& error) {
    return device::fail(events, error);
  } catch (const std::exception& error) {
    if (const auto lost = device::lost_device(error)) return device::fail(events, *lost);
    if (const auto memory = device::out_of_memory(error, trial)) return device::fail(events, *memory);
    if (const auto refused = device::refusal(error)) return device::fail(events, *refused);
    const auto* torch = dynamic_cast<const c10::Error*>(&error);
    events.end(Status::kFailed, torch ? device::first_line(*torch) : error.what(), true);
  }
  return kExitFailed;
}

}  // namespace

Run declare_train(CLI::App& app) {
  struct Flags {
    RunFlags run;
    double checkpoint_seconds = training::TrainingOptions{}.checkpoint_every.count();
    std::vector<std::string> probes;
    bool json = false;
    RankFlags ranks;
  };
  auto flags = std::make_shared<Flags>();
  auto& options = flags->run.options;
  flags->run.declare(app);
  app.add_option(flag::kRunDir, options.run_dir, "Folder for checkpoints")->type_name("FOLDER")->required();
  app.add_option(flag::kResume, options.resume, "Resume from this checkpoint")->type_name("FILE");
  app.add_option(flag::kResumeSha256, options.resume_sha256, "Expected SHA-256 of the checkpoint")
      ->type_name("SHA-256")
      ->needs(flag::kResume);
  app.add_flag(flag::kRestartIfLost, options.restart_if_lost,
               "Start from scratch, with a warning, if the checkpoint is unusable");
  app.add_option(flag::kWeights, flags->run.weights,
                 "Safetensors file with the weights that the recipe calls NAME (repeatable)")
      ->type_name("NAME=FILE");
  app.add_option(
         "--checkpoint-seconds", flags->checkpoint_seconds,
         "Seconds between checkpoints, or 50 times the cost of the last one if longer; 0: after every step")
      ->envname("ABLATE_CHECKPOINT_SECONDS")
      ->check(seconds())
      ->type_name("SECONDS")
      ->capture_default_str();
  app.add_option("--keep-last", options.keep_last, "Number of newest checkpoints to keep")
      ->check(whole_number(1, 1'000'000))
      ->type_name("N")
      ->capture_default_str();
  options.keep_best.clear();
  app.add_option(
         "--keep-best", options.keep_best,
         "Metric whose best checkpoint is kept as best.safetensors: one of the task's, such as val/top1 or "
         "val_ema/loss, or none; by default the task's first, val/top1 of a classifier")
      ->check(one_of(kept_metrics()))
      ->type_name("METRIC");
  app.add_option(flag::kProbe, flags->probes,
                 "Look into the trained model: a probe's name, or JSON such as {\"name\": \"attention\", "
                 "\"images\": 8}; repeatable")
      ->type_name("PROBE")
      ->allow_extra_args(false);
  app.add_flag("--cuda-graph", options.cuda_graph,
               "Capture each step as a CUDA graph where possible (one GPU)")
      ->envname("ABLATE_CUDA_GRAPH");
  app.add_option("--profile", options.profile,
                 "Write a trace of 5 steps by PyTorch's profiler, for chrome://tracing or ui.perfetto.dev")
      ->type_name("FILE");
  app.add_option("--last-step", options.last_step)
      ->check(whole_number(0, std::numeric_limits<std::int64_t>::max()))
      ->group("");  // hidden: where `verify` ends
  declare_rank_flags(app, flags->ranks);
  app.add_flag(flag::kJson, flags->json, "Print events as JSON Lines even on a terminal");
  app.footer("Example:\n  ablate-trainer train --config trial.json --run-dir run --threads 2\n");
  return [flags]() -> int {
    flags->run.options.checkpoint_every = std::chrono::duration<double>{flags->checkpoint_seconds};
    const auto events = events_for(flags->json, flags->ranks);
    const int code = train(flags->run, flags->ranks, protocol::read_probes(flags->probes, {}), *events);
    return code == kExitOk && !events->heard() ? kExitFailed : code;
  };
}

}  // namespace abl::commands
