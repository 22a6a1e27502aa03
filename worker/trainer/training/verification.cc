// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/verification.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cstring>

#include "base/error.h"
#include "worker/trainer/ranks/batch_share.h"
#include "worker/trainer/training/checkpoint.h"

namespace abl::training {
namespace {

namespace fs = std::filesystem;

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (fs::temp_directory_path() / "ablate-verify-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw system_error("cannot create a folder " + name, errno);
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Keeps what the second run measures.
class Listener final : public protocol::Events {
 public:
  Listener(const Checkpoint& stored, Verification& result,
           const std::function<void(std::int64_t step)>& progress)
      : stored_{stored}, result_{result}, progress_{progress} {}

  /// Throws: Error{kFailedPrecondition} where the run saw something else, so that nothing can be compared.
  void start(const Start& start) override {
    const auto weights = start.environment.value("weights", WeightDigests{});
    const auto other = other_inputs(stored_, start.data_fingerprint, weights);
    if (!other.empty())
      throw Error{Code::kFailedPrecondition,
                  fmt::format("{} from those of the run; nothing was compared", other[0])};
    result_.from = start.resumed_step.value_or(0);
  }
  void metric(std::int64_t step, const std::map<std::string, double>& values) override {
    const bool is_new = !result_.points.contains(step);  // an evaluation measures a step once more
    result_.points[step].insert(values.begin(), values.end());
    if (is_new) progress_(step);
  }
  void log(LogLevel, const std::string&) override {}
  void checkpoint(std::int64_t step, const fs::path& path, const std::string&) override {
    newest = path, newest_step = step;
  }
  void end(Status, const std::string&, bool) override {}

  fs::path newest;
  std::int64_t newest_step = 0;

 private:
  const Checkpoint& stored_;
  Verification& result_;
  const std::function<void(std::int64_t step)> progress_;
};

double largest_difference(const torch::Tensor& a, const torch::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return INFINITY;
  const auto largest = (a.to(torch::kDouble) - b.to(torch::kDouble)).abs().max().item<double>();
  return std::isnan(largest) ? INFINITY : largest;
}

/// NaN is NaN here, as 0 is not -0. Both lie in files, contiguous.
bool same_bits(const torch::Tensor& a, const torch::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
         (a.nbytes() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0);
}

void compare(const Checkpoint& stored, const Checkpoint& again, Verification& result) {
  const auto differ = [&](const std::string& name, double largest) {
    result.different.push_back({name, largest});
  };
  for (const auto& [name, tensor] : stored.tensors) {
    ++result.compared;
    const auto found = again.tensors.find(name);
    if (found == again.tensors.end())
      differ(name, INFINITY);
    else if (!same_bits(tensor, found->second))
      differ(name, largest_difference(tensor, found->second));
  }
  for (const auto& [name, a, b] : {std::tuple{"sum of the training loss", stored.loss_sum, again.loss_sum},
                                   {"images recognised", stored.correct, again.correct}}) {
    ++result.compared;
    if (a != b) differ(name, std::abs(a - b));
  }
}

std::string text_of(const Machine& machine) {
  return fmt::format("PyTorch {}, {}, {}, {} threads, {} ranks{}", machine.torch, machine.device,
                     machine.instructions, machine.threads, machine.ranks,
                     machine.deterministic ? "" : ", not deterministic");
}

/// Throws: Error{kAborted} where this time the training does not get there: that is a difference too.
bool train_to_the_same_step(const TrainAgain& train, const TrainingOptions& options, Listener& listener,
                            std::int64_t step) {
  try {
    return train(options, listener) && listener.newest_step == step;
  } catch (const Error& error) {
    if (error.code() != Code::kAborted) throw;
    throw Error{Code::kAborted,
                fmt::format("trained again, the run does not get to step {}: {}", step, error.what())};
  }
}

}  // namespace

TrainAgain train_here(const std::atomic<bool>& stop) {
  return [&stop](const TrainingOptions& options, protocol::Events& events) {
    Training{options, events}.run(stop);
    return !stop;
  };
}

Verification verify(TrainingOptions options, const fs::path& to, const TrainAgain& train,
                    const std::function<void(std::int64_t step, std::int64_t last)>& progress) {
  Verification result;
  const ScratchFolder folder;
  const auto stored = read_checkpoint(to, {}, options.config_hash);
  at::set_num_threads(ranks::thread_share(options.threads, stored.machine.ranks));
  const auto here = this_machine(torch::Device{options.device}, stored.machine.ranks);
  if (!(stored.machine == here))
    result.other_machine =
        fmt::format("it was written by {}; this is {}", text_of(stored.machine), text_of(here));
  if (!options.resume.empty()) {
    const auto first = read_checkpoint(options.resume, {}, options.config_hash);
    const auto from = first.step;
    if (first.machine.ranks != stored.machine.ranks)
      throw Error{
          Code::kInvalidArgument,
          fmt::format(
              "the first checkpoint was written by {} ranks, the second by {}: they are not of the same run",
              first.machine.ranks, stored.machine.ranks)};
    if (from >= stored.step)
      throw Error{Code::kInvalidArgument,
                  fmt::format("the checkpoint to start from is of step {}, the other of "
                              "step {}; expected an earlier one",
                              from, stored.step)};
  }
  options.run_dir = folder.path();
  options.last_step = stored.step;
  options.keep_best = "none";
  options.checkpoint_every = std::chrono::hours{24 * 365};  // one, at the end
  Listener listener{stored, result, [&](std::int64_t step) {
                      if (progress) progress(step, stored.step);
                    }};
  if (!train_to_the_same_step(train, options, listener, stored.step))
    throw Error{Code::kCancelled, "stopped: nothing was compared"};
  result.to = stored.step;
  compare(stored, read_checkpoint(listener.newest, {}, stored.config_hash), result);
  return result;
}

}  // namespace abl::training
