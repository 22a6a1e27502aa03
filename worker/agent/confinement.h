// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "worker/agent/run_group.h"
#include "worker/agent/trainer_output.h"

namespace abl::agent {

/// Counts the runs of a user that are under way: what is left when none is belongs to none. Thread: any.
class RunsOfUser {
 public:
  void begin();
  /// Kills, where it was the last one, whatever still runs as that user below this process. One that begins
  /// meanwhile waits.
  void end(uid_t user);

 private:
  std::mutex mutex_;
  int under_way_ = 0;
};

/// Whom commands run as, where that is not the worker's own user.
struct RunUser {
  std::string name;
  std::string home, shell;
  ChildUser ids;
  std::shared_ptr<RunsOfUser> runs = std::make_shared<RunsOfUser>();
};

/// What the program of a `command:` gets of its worker and may do there: docs/security.md. Trainers are the
/// worker's own program and run as the worker does. 0: no limit beyond the worker's own.
struct Confinement {
  std::optional<RunUser> user;
  std::vector<std::string> passed;          ///< variables that `user` gets beside the usual ones: "SLURM_*"
  std::uint64_t open_files = 0;             ///< of a process
  std::uint64_t file_size = 0;              ///< bytes of a file
  GroupBounds bounds;                       ///< of a run; without groups, processes are `user`'s in all
  std::shared_ptr<const RunGroups> groups;  ///< null: there are none
};

/// Throws: Error{kInvalidArgument} for a user that does not exist, or is root, or cannot be looked up.
RunUser find_run_user(const std::string& name);

/// Makes the runs' root one that `user` may pass through, and not list.
/// Throws: Error where programs cannot be started as that user there, and why.
void open_runs_root(const std::filesystem::path& root, const RunUser& user);

/// Of a run whose worker died: what it left in its folder is for the worker alone.
void close_run_folder(const std::filesystem::path& folder);
/// And what it went on from: the folders of the attempts before. Not where there is a later one, which may be
/// under way on another machine, go on from one of them, and closes it at its end.
void close_attempts(const std::filesystem::path& folder);

/// A command's run within these limits, from before its program starts until nothing of it is left.
class ConfinedRun {
 public:
  /// Gives the folder to the user that the command runs as, lets it read the checkpoint where that lies in
  /// the folder of an earlier attempt of the same trial, and has the program start as a command may.
  /// Throws: Error naming the folder.
  ConfinedRun(const Confinement& confinement, std::uint32_t run, std::filesystem::path folder,
              std::filesystem::path checkpoint, ChildOptions& options);
  ~ConfinedRun();
  ConfinedRun(const ConfinedRun&) = delete;
  ConfinedRun& operator=(const ConfinedRun&) = delete;

  /// Ends what is left of it and closes its folder. To be called before its slots are free.
  void end();
  /// Its part of cgroup v2; nothing where there are none.
  std::optional<std::filesystem::path> group() const;
  /// Which limit a run that failed by this signal (0: none) met, and by which flag; empty: none that is
  /// known.
  std::string limit_met(int signal, const TrainerOutput& output) const;

 private:
  const Confinement& confinement_;
  const std::filesystem::path folder_, checkpoint_;
  std::optional<RunGroup> group_;
  bool ended_ = false;
};

}  // namespace abl::agent
