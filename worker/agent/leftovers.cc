// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/leftovers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/child_process.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "worker/agent/processes.h"

namespace abl::agent {
namespace fs = std::filesystem;
namespace {

using namespace std::chrono_literals;

constexpr auto kKillPatience = 10s;  // a process in the middle of a disk access may take long to die

/// The machine's start and the container's, in which a process number stands for one process at a time.
std::string read_boot() {
  std::string id = read_file("/proc/sys/kernel/random/boot_id");
  while (!id.empty() && id.back() == '\n') id.pop_back();
  std::error_code unknown;
  return id + " " + fs::read_symlink("/proc/self/ns/pid", unknown).string();
}
const std::string& this_boot() {
  static const std::string boot = read_boot();
  return boot;
}

/// A program as kept.
struct Kept {
  std::string boot;
  std::string directory;
  std::optional<Process> leader;  ///< nothing: the worker died before it was known
};

std::optional<Kept> read_kept(const std::string& record) {
  if (record.empty()) return std::nullopt;
  std::istringstream lines{record};
  Kept kept;
  std::getline(lines, kept.boot);
  std::getline(lines, kept.directory);
  Process leader;
  if (lines >> leader.id >> leader.session >> leader.start) {
    leader.group = leader.id;
    kept.leader = leader;
  }
  return kept;
}

/// Whether who started it is gone: a job of a living shell is not.
bool is_orphan(const Process& process) {
  const auto parent = look_at(process.parent);
  return process.parent == 1 || !parent || parent->session != process.session;
}

bool is_of(const Kept& kept, const std::optional<Process>& leader_now, const Process& process) {
  const auto directory = variable_of(process.id, "ABLATE_RUN_DIR");
  if (directory == kept.directory) return true;
  if (!kept.leader || process.group != kept.leader->group) return false;
  if (leader_now) return leader_now->start == kept.leader->start;  // otherwise the number was given again
  return !directory && process.session == kept.leader->session && process.start >= kept.leader->start &&
         is_orphan(process);
}

/// By a descriptor, which stands for this process and never for another that gets its number.
bool kill_if_same(const Process& process) {
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, process.id, 0));
  if (handle < 0) return errno == ENOSYS && ::kill(process.id, SIGKILL) == 0;
  const auto now = look_at(process.id);
  const bool killed = now && now->start == process.start &&
                      ::syscall(SYS_pidfd_send_signal, handle, SIGKILL, nullptr, 0) == 0;
  ::close(handle);
  return killed;
}

std::vector<Process> left_of(const Kept& kept) {
  const auto leader_now = kept.leader ? look_at(kept.leader->id) : std::nullopt;
  std::vector<Process> left;
  for (const Process& process : all_processes())
    if (!process.dead() && is_of(kept, leader_now, process)) left.push_back(process);
  return left;
}

/// Whom it runs as; nothing where it has gone.
std::optional<uid_t> user_of(pid_t id) {
  std::string text;
  try {
    text = read_file(fmt::format("/proc/{}/status", id));
  } catch (const Error&) {
    return std::nullopt;
  }
  constexpr std::string_view kField = "\nUid:\t";
  const auto found = text.find(kField);
  if (found == std::string::npos) return std::nullopt;
  uid_t user = 0;
  const char* const begin = text.data() + found + kField.size();
  if (std::from_chars(begin, text.data() + text.size(), user).ec != std::errc{}) return std::nullopt;
  return user;
}

/// Those below this process that are marked, and those below them.
std::vector<Process> marked_below(const std::function<bool(pid_t)>& marks) {
  std::vector<Process> rest;
  const std::vector<Process> all = all_processes();
  std::set<pid_t> seen;  // numbers may be given again while one looks
  const std::function<void(pid_t, bool)> walk = [&](pid_t above, bool is_marked) {
    for (const Process& process : all) {
      if (process.parent != above || !seen.insert(process.id).second) continue;
      const bool marked = is_marked || marks(process.id);
      if (marked && !process.dead()) rest.push_back(process);
      walk(process.id, marked);
    }
  };
  walk(::getpid(), false);
  return rest;
}

/// Kills what is found until nothing is. Returns: how many were killed.
int kill_all(const std::function<std::vector<Process>()>& find) {
  std::set<std::pair<pid_t, std::uint64_t>> killed;
  const auto deadline = std::chrono::steady_clock::now() + kKillPatience;
  for (;;) {
    const std::vector<Process> left = find();
    if (left.empty()) break;
    for (const Process& process : left)
      if (kill_if_same(process)) killed.emplace(process.id, process.start);
    if (std::chrono::steady_clock::now() > deadline) {
      log_error("process {} of an ended run did not exit: kill it by hand", left.front().id);
      break;
    }
    std::this_thread::sleep_for(5ms);
  }
  return static_cast<int>(killed.size());
}

}  // namespace

std::string program_record(const fs::path& directory, std::optional<pid_t> group) {
  std::string text = fmt::format("{}\n{}\n", this_boot(), directory.string());
  if (group)
    if (const auto leader = look_at(*group))
      text += fmt::format("{} {} {}\n", leader->id, leader->session, leader->start);
  return text;
}

fs::path folder_of_record(const std::string& record) {
  const auto kept = read_kept(record);
  return kept ? fs::path{kept->directory} : fs::path{};
}

int end_leftovers(const std::string& record) {
  const auto kept = read_kept(record);
  if (!kept || kept->boot != this_boot()) return 0;
  return kill_all([&] { return left_of(*kept); });
}

void adopt_orphans() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
    log_warning("cannot adopt what runs leave behind: {}", std::strerror(errno));
}

/// What is left has been adopted, or is below what has.
bool end_rest(const fs::path& directory) {
  if (!ChildProcess::may_have_orphans()) return false;
  kill_all(
      [&] { return marked_below([&](pid_t id) { return variable_of(id, "ABLATE_RUN_DIR") == directory; }); });
  reap_orphans();
  return true;
}

void end_rest_of_user(uid_t user) {
  if (!ChildProcess::may_have_orphans()) return;
  kill_all([&] { return marked_below([&](pid_t id) { return user_of(id) == user; }); });
  reap_orphans();
}

void reap_orphans() {
  if (!ChildProcess::may_have_orphans()) return;
  siginfo_t any{};
  if (::waitid(P_ALL, 0, &any, WEXITED | WNOHANG | WNOWAIT) != 0 || any.si_pid == 0) return;
  for (const Process& process : all_processes())
    if (process.parent == ::getpid() && process.dead()) ChildProcess::reap_orphan(process.id);
}

}  // namespace abl::agent
