// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
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

}  // namespace abl::agent
