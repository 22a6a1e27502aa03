// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/run_group.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

namespace abl::agent {
namespace fs = std::filesystem;
namespace {

using namespace std::chrono_literals;

constexpr auto kGroupPatience = 10s;  // a process in the middle of a disk access may take long to die
constexpr const char *kTree = "/sys/fs/cgroup", *kRun = "run-";

void make_group(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST)
    throw system_error("cannot make the group " + folder.string(), errno);
}

/// A value of a file like memory.events: "oom 0\noom_kill 1\n". 0 where there is none.
std::uint64_t count_of(const fs::path& file, const std::string& name) {
  std::string text;
  try {
    text = read_file(file);
  } catch (const Error&) {
    return 0;  // that is not bounded here
  }
  std::istringstream lines{text};
  std::string key;
  for (std::uint64_t value = 0; lines >> key >> value;)
    if (key == name) return value;
  return 0;
}

/// Kills what is in a group, and removes it.
void end_group(const fs::path& folder) {
  try {
    write_file(folder / "cgroup.kill", "1");
    const auto deadline = std::chrono::steady_clock::now() + kGroupPatience;
    while (count_of(folder / "cgroup.events", "populated") > 0 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(1ms);
  } catch (const Error& error) {
    log_warning("{}: something of a run may be left", error.what());
  }
  if (::rmdir(folder.c_str()) != 0 && errno != ENOENT)
    log_warning("{}", system_error("cannot remove the group " + folder.string(), errno).what());
}

bool has_word(const std::string& text, const std::string& wanted) {
  std::istringstream words{text};
  for (std::string word; words >> word;)
    if (word == wanted) return true;
  return false;
}

}  // namespace

RunGroups::RunGroups(fs::path folder) : folder_{std::move(folder)} {
  const fs::path own = folder_ / "worker";
  const auto refuse = [](const fs::path& file) {
    throw Error{
        Code::kInvalidArgument,
        fmt::format("there is no {}; expected a folder of cgroup v2, on Linux 5.14 or newer", file.string())};
  };
  if (!fs::exists(folder_ / "cgroup.controllers")) refuse(folder_ / "cgroup.controllers");
  make_group(own);
  if (!fs::exists(own / "cgroup.kill")) refuse(own / "cgroup.kill");
  write_file(own / "cgroup.procs", "0");  // groups with processes of their own cannot be divided
  const std::string there = read_file(folder_ / "cgroup.controllers");
  const auto divide = [&](const char* controller) {
    if (!has_word(there, controller)) return false;
    write_file(folder_ / "cgroup.subtree_control", fmt::format("+{}", controller));
    return true;
  };
  bounds_memory_ = divide("memory");
  bounds_processes_ = divide("pids");
  for (const auto& entry : fs::directory_iterator{folder_})
    if (entry.is_directory() && entry.path().filename().string().starts_with(kRun)) end_group(entry.path());
}

std::optional<fs::path> delegated_group() {
  std::error_code none;
  if (!fs::exists("/proc/self/cgroup", none)) return std::nullopt;
  std::istringstream lines{read_file("/proc/self/cgroup")};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("0::/")) continue;
    const fs::path folder = kTree + line.substr(3);
    char mark = 0;
    for (const char* name :
         {"trusted.delegate", "user.delegate"})  // systemd's; the first is for root to read
      if (::getxattr(folder.c_str(), name, &mark, 1) == 1 && mark == '1') return folder;
  }
  return std::nullopt;
}

RunGroup::RunGroup(const RunGroups& groups, std::uint32_t run, const GroupBounds& bounds)
    : folder_{groups.folder() / fmt::format("{}{}", kRun, run)} {
  make_group(folder_);
  try {
    if (groups.bounds_memory()) {
      write_file(folder_ / "memory.oom.group", "1");  // half of a program is of no use to anybody
      if (bounds.memory > 0) {
        write_file(folder_ / "memory.max", std::to_string(bounds.memory));
        if (fs::exists(folder_ / "memory.swap.max")) write_file(folder_ / "memory.swap.max", "0");
      }
    }
    if (groups.bounds_processes() && bounds.processes > 0)
      write_file(folder_ / "pids.max", std::to_string(bounds.processes));
    const fs::path processes = folder_ / "cgroup.procs";
    entrance_ = ::open(processes.c_str(), O_WRONLY | O_CLOEXEC);
    if (entrance_ < 0) throw system_error("cannot open " + processes.string(), errno);
  } catch (...) {
    end_group(folder_);
    throw;
  }
}

RunGroup::~RunGroup() {
  end();
  ::close(entrance_);
}

void RunGroup::end() {
  if (std::exchange(ended_, true)) return;
  met_memory_ = count_of(folder_ / "memory.events", "oom_kill") > 0;
  met_processes_ = count_of(folder_ / "pids.events", "max") > 0;
  end_group(folder_);
}

}  // namespace abl::agent
