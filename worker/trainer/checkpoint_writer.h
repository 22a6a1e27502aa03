// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <future>
#include <map>
#include <string>

#include "worker/trainer/checkpoint.h"
#include "worker/trainer/checkpoint_files.h"
#include "worker/trainer/events.h"

namespace abl::trainer {

/// Writes the checkpoints of a run beside its training, one at a time. The training waits for a copy of its
/// state in memory, which is kept for the next one; a thread does the rest: checks, writes, hashes, says
/// `checkpoint`, and only then removes what is too old. Thread: one.
class CheckpointWriter {
 public:
  using Duration = std::chrono::duration<double>;

  /// `events`: must take a checkpoint from another thread.
  CheckpointWriter(const std::filesystem::path& folder, int keep_last, Events& events);
  /// Waits for what is under way; whether it fails is not told any more.
  ~CheckpointWriter() = default;
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Those that earlier processes of this run left in the folder count too.
  void adopt() { files_.adopt(); }
  /// Begins to write `checkpoint`, once the one before is there. Its tensors are copied first: they may
  /// change when this returns. Throws: what `finish` throws, of the one before.
  void begin(Checkpoint checkpoint, bool is_best);
  bool is_writing() const;
  /// Throws what a checkpoint's writing threw, if that has ended.
  void check();
  /// Waits for the one that is under way. Throws what writing it threw.
  void finish();

  /// What the newest checkpoint took from the training: the time of the copy, for which it stood still, and
  /// the processor's time in the thread. A disk that is waited for takes nothing from it.
  Duration cost() const { return cost_; }
  /// The time between checkpoints where `wished` is wished for: at least 50 times what the newest one cost,
  /// so that they take no more than 2 % of the time. 0 is 0: after every step.
  Duration interval(Duration wished) const;

 private:
  std::map<std::string, torch::Tensor> copy_of(const std::map<std::string, torch::Tensor>& tensors);
  Duration write(const Checkpoint& checkpoint, bool is_best);

  CheckpointFiles files_;
  Events& events_;
  std::map<std::string, torch::Tensor> copies_;
  Duration copying_{0}, cost_{0};
  std::future<Duration> under_way_;  ///< last: its end is waited for before anything that it uses goes
};

}  // namespace abl::trainer
