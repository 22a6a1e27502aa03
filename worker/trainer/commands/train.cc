// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <memory>
#include <regex>

#include "base/error.h"
#include "config/trial_document.h"
#include "worker/trainer/commands/commands.h"
#include "worker/trainer/commands/model_source.h"
#include "worker/trainer/commands/train_ranks.h"
#include "worker/trainer/ranks/quiet_events.h"
#include "worker/trainer/terminal_events.h"
#include "worker/trainer/training.h"

namespace abl::trainer {
namespace {

WeightFiles weight_files(const std::vector<std::string>& flags) {
  WeightFiles files;
  for (const auto& flag : flags) {
    const auto cut = flag.find('=');
    if (cut == 0 || cut == std::string::npos || cut + 1 == flag.size())
      throw Error{Code::kInvalidArgument, "--weights " + flag + ": expected NAME=FILE"};
    if (!files.emplace(flag.substr(0, cut), flag.substr(cut + 1)).second)
      throw Error{Code::kInvalidArgument, "--weights " + flag + ": this name is given twice"};
  }
  return files;
}

/// Throws: Error{kInvalidArgument} for what is no device, Error{kFailedPrecondition} for one that is not
/// here.
void check_device(const std::string& device) {
  if (device == "cpu") return;
  if (!std::regex_match(device, std::regex{"cuda(:[0-9]{1,3})?"}))
    throw Error{Code::kInvalidArgument, "--device " + device + ": expected cpu, cuda or cuda:N"};
  if (!torch::cuda::is_available())
    throw Error{Code::kFailedPrecondition,
                "--device " + device + ": no GPU can be used here, or this PyTorch is built without CUDA"};
}

std::unique_ptr<Events> events_for(bool json, const RankFlags& ranks) {
  if (ranks.rank > 0) return std::make_unique<QuietEvents>();
  if (json || ranks.is_rank() || !isatty(STDOUT_FILENO)) return std::make_unique<JsonLines>();
  return std::make_unique<TerminalEvents>();
}

int train(TrainingOptions options, const std::string& config_file, bool json, const RankFlags& ranks) {
  const auto events = events_for(json, ranks);
  if (ranks.starts_ranks()) return train_with_ranks(ranks, options.device, *events);
  std::shared_ptr<RankGroup> group;  // it goes after the end was said: the others notice when it does
  try {
    options.trial = config::read_trial_or_throw(parse_json(config_file));
    options.config_hash = config::config_hash(config::canonical_text(options.trial));
    check_device(options.device);
    take_place(ranks, options);
    group = options.ranks;
    std::filesystem::create_directories(options.run_dir);
    Training training{std::move(options), *events};
    const bool complete = training.run(stop_asked());
    events->end(complete ? "completed" : "stopped", complete ? "" : "stopped on request", true);
    return kExitOk;
  } catch (const Error& error) {
    // what the same machine would meet again is not worth a retry; a full disk, a file system that was away
    // (the system errors that have no code of their own) or a lost device may pass
    const auto code = exit_code(error.code());
    events->end("failed", error.what(), code == kExitUnavailable || error.code() == Code::kUnknown);
    return code;
  } catch (const c10::Error& error) {
    events->end("failed", error.what_without_backtrace(), true);
  } catch (const std::exception& error) {
    events->end("failed", error.what(), true);
  }
  return kExitFailed;
}

}  // namespace

Run declare_train(CLI::App& app) {
  struct Flags {
    TrainingOptions options;
    std::string config_file;
    double checkpoint_seconds = TrainingOptions{}.checkpoint_every.count();
    std::vector<std::string> weights;
    bool json = false;
    RankFlags ranks;
  };
  auto flags = std::make_shared<Flags>();
  auto& options = flags->options;
  app.add_option("--config", flags->config_file, "The trial's JSON document")->required();
  app.add_option("--run-dir", options.run_dir, "Where checkpoints go")->required();
  app.add_option("--resume", options.resume, "Go on from this checkpoint");
  app.add_option("--resume-sha256", options.resume_sha256, "Its digest as reported");
  app.add_option("--data-root", options.data_root, "Folder of the data set");
  app.add_option("--weights", flags->weights,
                 "NAME=FILE: safetensors of that name in the recipe (repeatable)");
  app.add_option("--threads", options.threads, "Threads for the products")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--loader-threads", options.loader_threads,
                 "Threads that prepare images; 0: as many as --threads")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--device", options.device, "cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--checkpoint-seconds", flags->checkpoint_seconds, "Time between checkpoints")
      ->envname("ABLATE_CHECKPOINT_SECONDS")
      ->capture_default_str();
  declare_rank_flags(app, flags->ranks);
  app.add_flag("--json", flags->json, "Events as JSON Lines on a terminal too");
  return [flags]() -> int {
    flags->options.weights = weight_files(flags->weights);
    flags->options.checkpoint_every = std::chrono::duration<double>{flags->checkpoint_seconds};
    return train(flags->options, flags->config_file, flags->json, flags->ranks);
  };
}

}  // namespace abl::trainer
