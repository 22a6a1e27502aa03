// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>

namespace abl::agent {

/// A run's program gets SIGKILL from the kernel when its worker dies, but what it started itself, behind a
/// shell, say, does not. So the worker keeps beside the run's spool which program it was, and its next start
/// ends what is left of it.

/// Keeps that a program starts in `directory`, and, once it has, that it leads `group`. Throws: Error naming
/// the file.
void keep_program(const std::filesystem::path& spool, const std::filesystem::path& directory,
                  std::optional<pid_t> group);

/// Kills what is left of the program that a dead worker kept there, and waits until it is gone. A process is
/// taken for it when its environment names the run's folder, as a worker has set it, or when it is in the
/// program's group and the group's number has not been given to another since. Returns: how many were killed.
int end_leftovers(const std::filesystem::path& spool);

}  // namespace abl::agent
