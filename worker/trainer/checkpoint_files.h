// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>

namespace abl::trainer {

/// Removes checkpoints of a folder that were begun and not finished, by processes that are gone.
void remove_unfinished(const std::filesystem::path& folder);

/// Which checkpoints of a run stay on the disk: the newest few and, under a name of its own, the best.
class CheckpointFiles {
 public:
  /// `keep_last`: at least 1. One more than that may lie there while the newest is written.
  CheckpointFiles(std::filesystem::path folder, int keep_last);

  /// Where the checkpoint of a step goes: "checkpoint-400.safetensors".
  std::filesystem::path file_of(std::int64_t step) const;
  /// Those that earlier processes of this run left in the folder count too; what they had only begun to write
  /// is removed.
  void adopt();
  /// After a checkpoint was written and reported: removes those that are too many.
  void add(const std::filesystem::path& file);
  /// Makes a checkpoint of this run the best: "best.safetensors", which stays when the other name goes.
  /// Throws: Error when the file system refuses.
  void make_best(const std::filesystem::path& file) const;

 private:
  const std::filesystem::path folder_;
  const std::size_t keep_last_;
  std::deque<std::filesystem::path> kept_;  ///< oldest first
};

}  // namespace abl::trainer
