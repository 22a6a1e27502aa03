// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace abl {

/// Whom a program runs as: numbers, since nobody is looked up between fork and exec.
struct ChildUser {
  uid_t user = 0;
  gid_t group = 0;
  std::vector<gid_t> groups;  ///< all others
};

/// The most of a resource (RLIMIT_…) that a program may have: less where its parent may have less.
struct ChildLimit {
  int resource = 0;
  rlim_t most = 0;
};

struct ChildOptions {
  std::vector<std::string> argv;                   ///< argv[0] is looked up on the PATH; no shell is involved
  std::map<std::string, std::string> environment;  ///< added to, or replacing, the parent's
  bool environment_alone = false;                  ///< nothing of the parent's environment is added to that
  bool no_new_privileges = false;    ///< no setuid program gives it, or what it starts, more than it has
  std::vector<ChildLimit> limits{};  ///< soft and hard
  std::optional<ChildUser> user{};   ///< nothing: the parent's; only root may become another
  int group_fd = -1;                 ///< cgroup.procs of the cgroup v2 that it enters; -1: the parent's
  std::filesystem::path working_directory;            ///< empty: the parent's
  int stdin_fd = -1, stdout_fd = -1, stderr_fd = -1;  ///< -1: /dev/null for stdin, inherited for the others
  bool die_with_parent =
      true;  ///< SIGKILL when the *thread* that started it ends (PDEATHSIG): start from a lasting thread
  std::chrono::milliseconds grace{5000};  ///< between SIGTERM and SIGKILL in the destructor
};

/// How a child ended.
struct ChildExit {
  int code = 0;    ///< exit status, when `signal` is 0
  int signal = 0;  ///< the signal that ended it, or 0
  /// Exit code 0, and it had nothing by which to heed a signal: at its end it caught, ignored and blocked
  /// none of those that ask programs to go, nor SIGPIPE (as Python does, which lets go of the others before
  /// it ends), and it has waited for no child, which may have heeded one.
  bool unheeding = false;
  bool ok() const { return code == 0 && signal == 0; }
  std::string describe() const;  ///< "exit code 3", "killed by SIGKILL (9)"
};

/// A program in a process group of its own, with stdin, stdout and stderr and no other descriptor. The
/// destructor asks (SIGTERM), waits the grace period, insists (SIGKILL) and reaps: no orphan, no zombie.
/// Thread: one owner; `terminate` and `kill` may be called from any thread.
class ChildProcess {
 public:
  /// Throws: Error when the program cannot be started (not found, not executable, no memory).
  explicit ChildProcess(const ChildOptions& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  /// How it ended, if it has: never blocks.
  std::optional<ChildExit> poll();
  /// Readable once it has ended, for poll(2); -1 where the kernel has no such descriptor.
  int end_descriptor() const { return end_descriptor_; }
  /// Waits for the end, at most `timeout`.
  std::optional<ChildExit> wait(std::chrono::milliseconds timeout);
  ChildExit wait();
  void terminate();  ///< SIGTERM to the whole group
  void kill();       ///< SIGKILL to the whole group

  /// Reaps a child of this process that no ChildProcess has started, if it has ended: an orphan that this
  /// process has adopted (PR_SET_CHILD_SUBREAPER). Never takes the end of another's child.
  /// Thread: any.
  static void reap_orphan(pid_t pid);
  /// Whether this process may have children that no ChildProcess has started: orphans, if it adopts them.
  /// False is certain, also for what a child had left when its end was told.
  /// Thread: any.
  static bool may_have_orphans();

 private:
  void signal_group(int signal);
  pid_t pid_;
  int end_descriptor_ = -1;
  std::chrono::milliseconds grace_;
  std::optional<ChildExit> exit_;
};

/// Runs a program to its end with `input` on its stdin.
/// Throws: Error when it cannot be started, outlives `timeout` or is still there when `stop` is requested (it
/// is then killed), or ends otherwise than with exit code 0; the message carries the end of its stderr.
/// Returns: what it wrote to stdout.
std::string run_program(const std::vector<std::string>& argv, const std::string& input,
                        std::chrono::milliseconds timeout, const std::stop_token& stop = {});

/// What a program of ours said was wrong, of what `run_program` threw: behind "ablate-worker: ". Nothing
/// where it said nothing of its own.
std::optional<std::string> own_words(const Error& error, std::string_view program);

}  // namespace abl
