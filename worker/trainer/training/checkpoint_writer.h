// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <future>
#include <map>
#include <optional>
#include <string>

#include "protocol/events.h"
#include "worker/trainer/training/checkpoint.h"

namespace abl::training {

/// Which checkpoints of a run stay on the disk: the newest few and, under a name of its own, the best.
class CheckpointFiles {
 public:
  /// `keep_last`: at least 1. One more than that may lie there while the newest is written.
  CheckpointFiles(std::filesystem::path folder, int keep_last);

  /// Where the checkpoint of a step goes.
  std::filesystem::path file_of(std::int64_t step) const;
  /// Those that earlier processes of this run left in the folder count too; what they had only begun to write
  /// is removed.
  void adopt();
  /// After a checkpoint was written and reported: removes those that are too many.
  void add(const std::filesystem::path& file);
  /// Makes a checkpoint of this run the best (`kBestCheckpoint`), which stays when the other name goes.
  /// Throws: Error when the file system refuses.
  void make_best(const std::filesystem::path& file) const;
  std::filesystem::path best() const;

 private:
  const std::filesystem::path folder_;
  const std::size_t keep_last_;
  std::deque<std::filesystem::path> kept_;  ///< oldest first
};

/// Writes the checkpoints of a run beside its training, one at a time. The training waits for a copy of its
/// state in memory, never for the disk: a copy is held until it is wanted in a file, and a thread does the
/// rest: checks, writes, hashes, says `checkpoint`, and only then removes what is too old. At most two copies
/// are kept, one that is being written and one that is held, and their memory is used again. Thread: one.
class CheckpointWriter {
 public:
  using Duration = std::chrono::duration<double>;

  /// `events`: must take a checkpoint from another thread.
  CheckpointWriter(const std::filesystem::path& folder, int keep_last, protocol::Events& events);
  /// Waits for what is under way, and writes what is held; whether that fails is not told any more.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Those that earlier processes of this run left in the folder count too.
  void adopt() { files_.adopt(); }
  /// Holds a copy of `checkpoint`, whose tensors may change when this returns, in place of one that was held
  /// before. It waits for nothing.
  void hold(Checkpoint checkpoint, bool is_best);
  /// Begins to write what is held, once the one before is there: where nothing is being written this waits
  /// for nothing. Throws: what `finish` throws, of the one before; what is held stays held then.
  void write();
  bool is_writing() const;
  /// Throws what a checkpoint's writing threw, if that has ended.
  void check();
  /// Waits for the one that is under way. Throws what writing it threw.
  void finish();

  /// What the newest checkpoint that was written took from the training: the time for which it stood still,
  /// and the processor's time in the thread. A disk that is slow takes nothing from it.
  Duration cost() const { return cost_; }
  /// The time between files where `wished` is wished for: at least 50 times what the newest one cost, so that
  /// they take no more than 2 % of the time. 0 is 0: after every step.
  Duration interval(Duration wished) const;

 private:
  using Tensors = std::map<std::string, torch::Tensor>;
  struct Held {
    Checkpoint checkpoint;
    bool is_best = false;
    std::size_t copy = 0;  ///< its place in `copies_`
    Duration stood_still{0};
  };
  Duration write_file(const Checkpoint& checkpoint, bool is_best);

  CheckpointFiles files_;
  protocol::Events& events_;
  std::array<Tensors, 2> copies_;
  std::optional<Held> held_;
  std::size_t written_copy_ = 0;  ///< of the newest that was begun
  Duration stood_still_{0};       ///< for that one
  Duration cost_{0};
  std::future<Duration> under_way_;  ///< last: its end is waited for before anything that it uses goes
};

}  // namespace abl::training
