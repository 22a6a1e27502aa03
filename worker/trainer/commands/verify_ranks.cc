// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/commands/verify_ranks.h"

#include <fmt/format.h>

#include "base/error.h"
#include "worker/trainer/commands/train_ranks.h"

namespace abl::trainer {
namespace {

/// What each rank is started with.
std::vector<std::string> arguments_of(int ranks, const RunFlags& flags, const TrainingOptions& options) {
  std::vector<std::string> arguments{"train"};
  for (auto& argument : flags.arguments()) arguments.push_back(argument);
  arguments.insert(arguments.end(),
                   {"--run-dir", options.run_dir, "--last-step", std::to_string(options.last_step),
                    "--keep-best", options.keep_best, "--checkpoint-seconds",
                    fmt::format("{}", options.checkpoint_every.count()), "--ranks", std::to_string(ranks)});
  if (!options.resume.empty()) arguments.insert(arguments.end(), {"--resume", options.resume});
  return arguments;
}

}  // namespace

void check_gpus(const std::filesystem::path& to, const std::string& device, int ranks) {
  if (device == "cpu") return;
  const auto colon = device.find(':');
  if (ranks > 1 && colon != std::string::npos)
    throw Error{
        Code::kInvalidArgument,
        fmt::format("--device {} is one GPU; the run of {} had {} ranks: expected cuda, a GPU for each",
                    device, to.string(), ranks)};
  const int wanted = colon == std::string::npos ? ranks : std::stoi(device.substr(colon + 1)) + 1;
  const auto there = static_cast<int>(torch::cuda::device_count());
  if (there < wanted)
    throw Error{
        Code::kFailedPrecondition,
        fmt::format("--device {}: the run of {} needs {} here, and {} can be used; verify it on a "
                    "machine that has them",
                    device, to.string(), wanted == 1 ? "1 GPU" : fmt::format("{} GPUs", wanted), there)};
}

TrainAgain train_as_ranks(int ranks, const RunFlags& flags, const std::atomic<bool>& stop) {
  return [&flags, &stop, ranks](const TrainingOptions& options, Events& events) {
    const auto run = run_ranks(ranks, arguments_of(ranks, flags, options), events);
    if (stop) return false;
    if (run.end.status != "failed") return true;
    // not the exit code of a rank that was killed: of a verification it says that something differs
    if (run.end.retryable || run.exit_code == kExitUnavailable)
      throw Error{Code::kUnavailable, fmt::format("{}; nothing was compared: run it again", run.end.reason)};
    if (run.exit_code == kExitUsage)
      throw Error{Code::kFailedPrecondition, fmt::format("{}; nothing was compared", run.end.reason)};
    throw Error{Code::kAborted, run.end.reason};  // a number is not finite this time: something does differ
  };
}

}  // namespace abl::trainer
