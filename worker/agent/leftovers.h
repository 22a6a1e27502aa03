// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

namespace abl::agent {

/// What a run's program started itself and left, in a session of its own, say. The program's group ends with
/// the program; for the rest the worker adopts the orphans of its runs, and ends those of a run before it
/// gives the run's slots free.
///
/// A run's program gets SIGKILL from the kernel when its worker dies, but what it started itself, behind a
/// shell, say, does not. So the worker keeps in the run's spool which program it was, and its next start ends
/// what is left of it.

/// From here on orphans below this process become its children, however they left their group.
void adopt_orphans();

/// Kills what the run of this folder has left below this process, and waits until it is gone: processes whose
/// environment names the folder, as a worker has set it, and all that is below those. To be called when the
/// run's program has been reaped. Returns: false when that had left nothing, not even an ended child.
bool end_rest(const std::filesystem::path& directory);

/// Kills whatever runs as this user below this process, however it hides, and waits until it is gone. To be
/// called while no run of that user is under way.
void end_rest_of_user(uid_t user);

/// Reaps the adopted orphans that have ended.
void reap_orphans();

/// What is to be kept of a program that starts in `directory`, and, once it has, leads `group`.
/// Throws: Error where /proc cannot be read.
std::string program_record(const std::filesystem::path& directory, std::optional<pid_t> group);

/// The run's folder of such a record; empty where it has none.
std::filesystem::path folder_of_record(const std::string& record);

/// Kills what is left of the program that a dead worker kept so, and waits until it is gone. A process is
/// taken for it when its environment names the run's folder, or when it is in the program's group and the
/// group's number has not been given to another since: the program still leads it, or an orphan is in it.
/// Returns: how many were killed.
int end_leftovers(const std::string& record);

}  // namespace abl::agent
