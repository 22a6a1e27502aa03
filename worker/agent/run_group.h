// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace abl::agent {

/// What a run may have at most of what its group counts; 0: no bound.
struct GroupBounds {
  std::uint64_t memory = 0;  ///< bytes, with the files that it has in the system's cache
  std::uint64_t processes = 0;
};

/// A part of the machine's cgroup v2 tree that was handed over to this worker (systemd: Delegate=yes). Each
/// run of a command gets a group of its own in it: what the run starts stays there, however it hides.
class RunGroups {
 public:
  /// Moves this process into the group `worker` beneath `folder`, which others of the tree must not be in,
  /// and ends the groups that an earlier worker left there. Throws: Error naming the file that cannot be
  /// written.
  explicit RunGroups(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }
  bool bounds_memory() const { return bounds_memory_; }
  bool bounds_processes() const { return bounds_processes_; }

 private:
  std::filesystem::path folder_;
  bool bounds_memory_ = false, bounds_processes_ = false;
};

/// The folder of this process's own group, where systemd has handed that over; nothing otherwise.
std::optional<std::filesystem::path> delegated_group();

/// The group of one run, from before its program starts until all of it is dead.
class RunGroup {
 public:
  /// Throws: Error naming the file that cannot be written.
  RunGroup(const RunGroups& groups, std::uint32_t run, const GroupBounds& bounds);
  ~RunGroup();
  RunGroup(const RunGroup&) = delete;
  RunGroup& operator=(const RunGroup&) = delete;

  /// A descriptor: who writes "0" to it enters the group.
  int entrance() const { return entrance_; }
  const std::filesystem::path& folder() const { return folder_; }
  /// Kills what is in it, waits until nothing is, and removes it.
  void end();
  /// Which bounds it met, known when it has ended.
  bool met_memory() const { return met_memory_; }
  bool met_processes() const { return met_processes_; }

 private:
  const std::filesystem::path folder_;
  int entrance_ = -1;
  bool ended_ = false, met_memory_ = false, met_processes_ = false;
};

}  // namespace abl::agent
