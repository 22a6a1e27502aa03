// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace abl::agent {

/// What /proc/PID/stat says.
struct Process {
  pid_t id = 0, parent = 0, group = 0, session = 0;
  char state = 0;
  std::uint64_t start = 0;           ///< clock ticks after the machine's start
  std::uint64_t ticks = 0;           ///< of processor time, its own and that of the children it has reaped
  std::uint64_t resident_pages = 0;  ///< of memory
  bool dead() const { return state == 'Z' || state == 'X'; }
};

/// Nothing where it has gone, or is not to be seen.
std::optional<Process> look_at(pid_t id);
/// All that are to be seen but this one, in one look at /proc.
std::vector<Process> all_processes();
/// The value of a variable that a process was started with; nothing when it has none, or is another user's.
std::optional<std::string> variable_of(pid_t id, const std::string& name);

/// Bytes that a process, and the children it has reaped, have read from disks and written to them.
struct DiskTraffic {
  std::uint64_t read = 0, written = 0;
};
/// `denied`: set where it is there and may not be looked at. Nothing then, and where it has gone.
std::optional<DiskTraffic> disk_traffic_of(pid_t id, bool& denied);

/// Which run's folder the children of this process were started with: each is asked once, since that does not
/// change.
using FoldersOfChildren = std::map<std::pair<pid_t, std::uint64_t>, std::string>;

/// One look at all processes of the machine, for all runs that are looked at.
class ProcessTable {
 public:
  ProcessTable(std::vector<Process> all, FoldersOfChildren& folders);
  const Process* find(pid_t id) const;
  std::span<const Process* const> below(pid_t parent) const { return of(by_parent_, parent); }
  std::span<const Process* const> in_group(pid_t group) const { return of(by_group_, group); }
  /// Children of this process that were started in a run's folder: its program, and orphans of it.
  std::span<const Process* const> started_in(const std::string& folder) const;

 private:
  using Index = std::unordered_map<pid_t, std::vector<const Process*>>;
  static std::span<const Process* const> of(const Index& index, pid_t id);

  std::vector<Process> all_;
  std::unordered_map<pid_t, const Process*> by_id_;
  Index by_parent_, by_group_;
  std::unordered_map<std::string, std::vector<const Process*>> by_folder_;
};

/// What a run's processes have taken since the look before. What could not be had is absent.
struct Usage {
  std::optional<double> cpu_seconds{};
  std::uint64_t memory_bytes = 0;  ///< resident now, the sum over the processes
  std::optional<DiskTraffic> disk{};
};

/// What the processes of one run take: its program, what is below it or in its group, and what it has left as
/// an orphan that this process has adopted (leftovers.h). What ends between two looks is in what its parent
/// has reaped; only of what nobody in the run reaps the time since the last look is lost. Thread: one.
class RunUsage {
 public:
  /// `leader`: the run's program, just started, which leads a group. `group`: the run's part of cgroup v2,
  /// where it has one: then its processor time is what that counts, and whatever is in it is the run's.
  RunUsage(pid_t leader, std::filesystem::path directory, std::optional<std::filesystem::path> group = {});

  /// Nothing where none of the run's processes is there.
  std::optional<Usage> look(const ProcessTable& table);

 private:
  using Amounts = std::array<std::uint64_t, 3>;  ///< ticks of processor time, bytes read, bytes written
  struct Counts {
    std::uint64_t start = 0;
    pid_t parent = 0;
    Amounts amounts{};
    Amounts owed{};  ///< of children that have gone, and are not in `amounts` yet
  };
  using Counted = std::map<pid_t, Counts>;
  std::vector<const Process*> members(const ProcessTable& table) const;
  Amounts growth(Counted& now) const;
  std::optional<std::uint64_t> group_microseconds() const;

  const pid_t leader_;
  const std::uint64_t leader_start_;
  const std::filesystem::path directory_;
  const std::optional<std::filesystem::path> group_;
  Counted before_;
  std::optional<std::uint64_t> group_before_;
  bool disk_denied_ = false;  ///< at the look before: what came meanwhile is not known
};

}  // namespace abl::agent
