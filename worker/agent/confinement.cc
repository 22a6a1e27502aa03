// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/confinement.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "worker/agent/leftovers.h"

extern char** environ;

namespace abl::agent {
namespace fs = std::filesystem;
namespace {

using namespace std::chrono_literals;

constexpr mode_t kToPassThrough = 0711, kForOwner = 0700;
constexpr rlim_t kMostProcesses = 16384;  // of a user that runs have to themselves, and of a run in a group
constexpr auto kProbePatience = 10s;      // with a program that does nothing

/// A star at the end stands for any rest.
constexpr std::string_view kUsual[] = {
    // clang-format off
    "PATH", "LANG", "LANGUAGE", "LC_*", "TERM", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "VIRTUAL_ENV", "CONDA_*", "PYTHON*", "CUDA_*", "NVIDIA_*", "NCCL_*", "GLOO_*", "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES", "OMP_*", "GOMP_*", "KMP_*", "MKL_*", "OPENBLAS_*", "TORCH_*", "PYTORCH_*", "XLA_*",
    "JAX_*", "TF_*", "HF_HOME"};
// clang-format on
/// What a name has in it whose value is nobody else's.
constexpr std::string_view kSecret[] = {"TOKEN", "SECRET", "PASSW", "KEY", "CREDENTIAL", "AUTH"};

bool matches(std::string_view name, std::string_view pattern) {
  if (!pattern.ends_with('*')) return name == pattern;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

bool sounds_secret(std::string_view name) {
  std::string upper{name};
  std::ranges::transform(upper, upper.begin(), [](unsigned char letter) { return std::toupper(letter); });
  return std::ranges::any_of(kSecret,
                             [&](std::string_view word) { return upper.find(word) != std::string::npos; });
}

/// A folder that is opened once and changed by that, so that nothing can be put in its place meanwhile.
/// Throws: Error naming it.
class OpenFolder {
 public:
  explicit OpenFolder(fs::path path)
      : path_{std::move(path)},
        descriptor_{::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)} {
    if (descriptor_ < 0) throw system_error("cannot open " + path_.string(), errno);
  }
  ~OpenFolder() { ::close(descriptor_); }
  OpenFolder(const OpenFolder&) = delete;
  OpenFolder& operator=(const OpenFolder&) = delete;

  void give(uid_t user, gid_t group, mode_t mode) const {
    if (::fchown(descriptor_, user, group) != 0 || ::fchmod(descriptor_, mode) != 0)
      throw system_error("cannot change who owns " + path_.string(), errno);
  }
  void set_mode(mode_t mode) const {
    if (::fchmod(descriptor_, mode) != 0)
      throw system_error("cannot change who may read " + path_.string(), errno);
  }
  /// A file in it, and not what a link there names.
  void give_file(const std::string& name, uid_t user, gid_t group) const {
    if (::fchownat(descriptor_, name.c_str(), user, group, AT_SYMLINK_NOFOLLOW) != 0)
      throw system_error("cannot change who owns " + (path_ / name).string(), errno);
  }

 private:
  const fs::path path_;
  const int descriptor_;
};

/// The folder of the attempt that a file lies in, of all attempts of a trial; nothing where it lies
/// elsewhere: a program may have said anything of where its checkpoint is.
std::optional<fs::path> attempt_of(const fs::path& file, const fs::path& trial) {
  const fs::path relative = file.lexically_normal().lexically_relative(trial);
  if (std::distance(relative.begin(), relative.end()) < 2 || *relative.begin() == "..") return std::nullopt;
  return trial / *relative.begin();
}

/// Of this process's environment, what finds programs, libraries, devices and the user's language, and
/// nothing that a name marks as secret unless it was asked for.
std::map<std::string, std::string> environment_of(const RunUser& user,
                                                  const std::vector<std::string>& asked_for) {
  std::map<std::string, std::string> passed;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text{*entry};
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, equals);
    const auto is_in = [&](const auto& patterns) {
      return std::ranges::any_of(patterns, [&](std::string_view pattern) { return matches(name, pattern); });
    };
    if (is_in(asked_for) || (is_in(kUsual) && !sounds_secret(name)))
      passed.emplace(name, text.substr(equals + 1));
  }
  passed["HOME"] = user.home;
  passed["USER"] = passed["LOGNAME"] = user.name;
  passed["SHELL"] = user.shell;
  return passed;
}

void hand_over(const fs::path& folder, const fs::path& checkpoint, const RunUser& user) {
  OpenFolder{folder.parent_path()}.set_mode(kToPassThrough);
  const OpenFolder own{folder};
  for (const auto& entry : fs::directory_iterator{folder})  // what the worker has just written
    own.give_file(entry.path().filename(), user.ids.user, user.ids.group);
  own.give(user.ids.user, user.ids.group, kForOwner);
  if (const auto earlier = attempt_of(checkpoint, folder.parent_path()); earlier && *earlier != folder)
    OpenFolder{*earlier}.set_mode(kToPassThrough);
}

}  // namespace

RunUser find_run_user(const std::string& name) {
  const auto refuse = [&](const std::string& why) {
    throw Error{Code::kInvalidArgument, fmt::format("--run-as {}: {}", name, why)};
  };
  std::array<char, 16384> buffer{};
  passwd entry{}, *found = nullptr;
  if (const int why = ::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found); why != 0)
    refuse(system_error("cannot look up the user", why).what());
  if (!found)
    refuse("no such user; expected one of this machine that owns nothing else, such as ablate-runs");
  if (entry.pw_uid == 0) refuse("root may do everything; expected a user of this machine with few rights");
  if (::geteuid() != 0 && entry.pw_uid != ::geteuid())
    refuse("only root can start programs as another user; start the worker as root, or without --run-as");
  if (entry.pw_uid == ::geteuid())
    refuse("is the worker's own user; expected another, which cannot read what the worker keeps");
  RunUser user{.name = name,
               .home = entry.pw_dir,
               .shell = entry.pw_shell,
               .ids = {.user = entry.pw_uid, .group = entry.pw_gid, .groups = {}}};
  int count = 64;
  user.ids.groups.resize(static_cast<std::size_t>(count));
  if (::getgrouplist(name.c_str(), entry.pw_gid, user.ids.groups.data(), &count) < 0) {
    user.ids.groups.resize(static_cast<std::size_t>(count));
    if (::getgrouplist(name.c_str(), entry.pw_gid, user.ids.groups.data(), &count) < 0)
      refuse("its groups cannot be read");
  }
  user.ids.groups.resize(static_cast<std::size_t>(count));
  if (std::ranges::find(user.ids.groups, gid_t{0}) != user.ids.groups.end())
    refuse("is in root's group; expected a user of this machine with few rights");
  return user;
}

void open_runs_root(const fs::path& root, const RunUser& user) {
  OpenFolder{root}.set_mode(kToPassThrough);
  ChildOptions nothing;
  nothing.argv = {"true"};
  nothing.working_directory = root;
  nothing.user = user.ids;
  try {
    ChildProcess child{nothing};
    if (const auto ended = child.wait(kProbePatience); !ended || !ended->ok())
      throw Error{Code::kFailedPrecondition, "'true' does not run"};
  } catch (const Error& error) {
    throw Error{
        Code::kInvalidArgument,
        fmt::format("--run-as {}: this user cannot run a program in {}: {}; expected a --runs-root whose "
                    "folders it may pass through, and a worker that may change users",
                    user.name, root.string(), error.what())};
  }
}

void close_run_folder(const fs::path& folder) {
  try {
    OpenFolder{folder}.give(::geteuid(), ::getegid(), kForOwner);
  } catch (const Error& error) {
    log_warning("{}: the user of commands may still read it", error.what());
  }
}

void close_attempts(const fs::path& folder) {
  close_run_folder(folder);
  const auto number_of = [](const fs::path& attempt) {
    const std::string name = attempt.filename();
    unsigned number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    return error == std::errc{} && end == name.data() + name.size() ? number : 0;
  };
  const unsigned own = number_of(folder);
  std::vector<fs::path> before;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator{folder.parent_path(), gone}) {
    const unsigned number = number_of(entry.path());
    if (number > own) return;
    if (number > 0 && number < own) before.push_back(entry.path());
  }
  for (const fs::path& attempt : before) close_run_folder(attempt);
}

void RunsOfUser::begin() {
  const std::scoped_lock lock{mutex_};
  ++under_way_;
}

void RunsOfUser::end(uid_t user) {
  const std::scoped_lock lock{mutex_};
  if (--under_way_ == 0) end_rest_of_user(user);
}

ConfinedRun::ConfinedRun(const Confinement& confinement, std::uint32_t run, fs::path folder,
                         fs::path checkpoint, ChildOptions& options)
    : confinement_{confinement}, folder_{std::move(folder)}, checkpoint_{std::move(checkpoint)} {
  GroupBounds bounds = confinement.bounds;
  if (bounds.processes == 0 && confinement.user) bounds.processes = kMostProcesses;
  const bool group_bounds_processes = confinement.groups && confinement.groups->bounds_processes();
  options.no_new_privileges = true;
  options.limits.push_back({RLIMIT_CORE, 0});
  if (confinement.open_files > 0) options.limits.push_back({RLIMIT_NOFILE, confinement.open_files});
  if (confinement.file_size > 0) options.limits.push_back({RLIMIT_FSIZE, confinement.file_size});
  if (confinement.groups) {
    group_.emplace(*confinement.groups, run, bounds);
    options.group_fd = group_->entrance();
  }
  if (!confinement.user) return;
  const RunUser& user = *confinement.user;
  options.user = user.ids;
  options.environment.merge(environment_of(user, confinement.passed));  // what is said of the run goes before
  options.environment_alone = true;
  if (!group_bounds_processes) options.limits.push_back({RLIMIT_NPROC, bounds.processes});
  user.runs->begin();
  try {
    for (const int pipe : {options.stdout_fd, options.stderr_fd})  // to be opened again, as /dev/stderr
      if (pipe >= 0 && ::fchown(pipe, user.ids.user, static_cast<gid_t>(-1)) != 0)
        throw system_error("cannot give a pipe to " + user.name, errno);
    hand_over(folder_, checkpoint_, user);
  } catch (...) {
    end();
    throw;
  }
}

ConfinedRun::~ConfinedRun() { end(); }

void ConfinedRun::end() {
  if (std::exchange(ended_, true)) return;
  if (group_) {
    group_->end();
    reap_orphans();  // among them what hid from its run
  }
  if (!confinement_.user) return;
  confinement_.user->runs->end(confinement_.user->ids.user);
  close_run_folder(folder_);
  if (const auto earlier = attempt_of(checkpoint_, folder_.parent_path()); earlier && *earlier != folder_)
    close_run_folder(*earlier);
}

std::optional<fs::path> ConfinedRun::group() const {
  return group_ ? std::optional{group_->folder()} : std::nullopt;
}

std::string ConfinedRun::limit_met(int signal, const TrainerOutput& output) const {
  const auto& bounds = confinement_.bounds;
  const auto says = [&](std::string_view words) { return output.speaks_of(words); };
  if (group_ && group_->met_memory())
    return bounds.memory > 0
               ? fmt::format("a run may have {} MiB of memory here (--run-memory)", bounds.memory >> 20)
               : "its group was out of memory";
  if (confinement_.file_size > 0 && (signal == SIGXFSZ || says("File too large")))
    return fmt::format("a run may write files of up to {} MiB here (--run-file-size)",
                       confinement_.file_size >> 20);
  if (confinement_.open_files > 0 && says("Too many open files"))
    return fmt::format("a process of a run may have {} files open here (--run-open-files)",
                       confinement_.open_files);
  const auto cannot_fork = {"Resource temporarily unavailable", "Cannot fork", "can't start new thread"};
  const auto processes = bounds.processes > 0 ? bounds.processes : kMostProcesses;
  if (group_ && group_->met_processes())
    return fmt::format("a run may have {} processes and threads here (--run-processes)", processes);
  if (confinement_.user && std::ranges::any_of(cannot_fork, says))
    return fmt::format("all runs together may have {} processes and threads here (--run-processes)",
                       processes);
  return {};
}

}  // namespace abl::agent
