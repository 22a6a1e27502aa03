// SPDX-License-Identifier: Apache-2.0
#include "base/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/guarded.h"

extern char** environ;

namespace abl {
namespace {

using namespace std::chrono_literals;

constexpr int kOldKernelsDescriptors = 4096;
/// A program starts with these neither ignored nor blocked: what asks it to go, and what it hears of its
/// children.
constexpr std::array kAsDefault{SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD};

/// What ChildProcess has started and not reaped. A number is let go with the lock, together with the call
/// that frees it. One that is given is known only when the program has been started, which may take long and
/// holds no lock: until then no child that is not in here is taken for another's.
struct OwnChildren {
  std::set<pid_t> ids;
  int starting = 0;
};
Guarded<OwnChildren>& own_children() {
  static auto& children = *new Guarded<OwnChildren>;  // for children that end at exit, too
  return children;
}

void reap_own_child(pid_t pid, int* status) {
  auto children = own_children().lock();
  waitpid(pid, status, 0);
  children->ids.erase(pid);
}

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& changes, bool alone) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry && !alone; ++entry) {
    const std::string text{*entry};
    if (!changes.contains(text.substr(0, text.find('=')))) merged.push_back(text);
  }
  for (const auto& [name, value] : changes) merged.push_back(name + "=" + value);
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (auto& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// In the child, before exec. By system calls and not by the library's functions of these names, which change
/// all threads of a process: here those of the parent, whose memory the child still shares.
/// Returns: whether it is that user now.
bool become_user(const ChildUser& user) {
  return syscall(SYS_setgroups, user.groups.size(), user.groups.data()) == 0 &&
         syscall(SYS_setresgid, user.group, user.group, user.group) == 0 &&
         syscall(SYS_setresuid, user.user, user.user, user.user) == 0;
}

/// In the child, before exec. Returns: whether it has no more than that now.
bool take_limit(const ChildLimit& limit) {
  rlimit now{};
  if (getrlimit(limit.resource, &now) != 0) return false;
  const rlim_t most = std::min(limit.most, now.rlim_max);
  const rlimit wanted{.rlim_cur = most, .rlim_max = most};
  return setrlimit(limit.resource, &wanted) == 0;
}

/// In the child, before exec: only async-signal-safe calls. Returns errno of the step that failed.
int become(const ChildOptions& options, pid_t parent, char* const* argv, char* const* environment) {
  setpgid(0, 0);
  if (options.group_fd >= 0 && write(options.group_fd, "0", 1) != 1) return errno;
  for (const ChildLimit& limit : options.limits)
    if (!take_limit(limit)) return errno;
  if (options.user && !become_user(*options.user)) return errno;
  if (options.no_new_privileges && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  if (options.die_with_parent) {  // after the change of user, which undoes it
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);  // the parent died between vfork and prctl
  }
  for (const int number : kAsDefault) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);  // last: a handler of the parent's must not run in its memory
  int in = options.stdin_fd;
  if (in < 0) in = open("/dev/null", O_RDONLY);
  if (in >= 0 && dup2(in, STDIN_FILENO) < 0) return errno;
  if (options.stdout_fd >= 0 && dup2(options.stdout_fd, STDOUT_FILENO) < 0) return errno;
  if (options.stderr_fd >= 0 && dup2(options.stderr_fd, STDERR_FILENO) < 0) return errno;
  if (!options.working_directory.empty() && chdir(options.working_directory.c_str()) != 0) return errno;
  // Whatever else is open here, libraries' descriptors and those of our own parent, is not the child's.
  if (close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0)  // a kernel before 5.11
    for (int fd = STDERR_FILENO + 1; fd < kOldKernelsDescriptors; ++fd) fcntl(fd, F_SETFD, FD_CLOEXEC);
  execvpe(argv[0], argv, environment);
  return errno;
}

/// The child borrows this thread's memory and stack until its exec, instead of a copy of what this process
/// maps, which costs the more the larger that is. Where the step to the program fails, errno comes through
/// `failure`: by a pipe and not by the memory, which sanitizers do not let it share. A function of its own,
/// for what the child leaves on the stack is nobody's. Throws nothing: -1 and errno, as fork.
[[gnu::noinline]] pid_t start_own_child(const ChildOptions& options, char* const* argv,
                                        char* const* environment, const std::array<int, 2>& failure) {
  const pid_t parent = getpid();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  ++own_children().lock()->starting;
  const pid_t pid = vfork();
  if (pid == 0) {
    const int why = become(options, parent, argv, environment);
    [[maybe_unused]] const auto written = write(failure[1], &why, sizeof why);
    _exit(127);
  }
  const int why = errno;
  {
    auto children = own_children().lock();
    --children->starting;
    if (pid > 0) children->ids.insert(pid);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = why;
  return pid;
}

/// Of a child that has ended and not been reaped: `ChildExit::unheeding`.
bool is_unheeding(pid_t pid) {
  std::string text;
  try {
    text = read_file("/proc/" + std::to_string(pid) + "/stat");
  } catch (const Error&) {
    return false;  // no descriptor, say
  }
  const auto name_end = text.rfind(')');  // the name before it may hold anything
  if (name_end == std::string::npos) return false;
  constexpr int kState = 3;  // the first field behind the name; see proc(5)
  constexpr int kChildrensFaults = 11, kBlocked = 32, kCaught = 34;  // between them what is ignored
  std::uint64_t watched = 0;
  for (const int number : kAsDefault) watched |= std::uint64_t{1} << (number - 1);
  const char *at = text.data() + name_end + 1, *const end = text.data() + text.size();
  for (int field = kState; field <= kCaught; ++field) {
    while (at != end && *at == ' ') ++at;
    const char* const begin = at;
    while (at != end && *at != ' ') ++at;
    if (field != kChildrensFaults && (field < kBlocked || field > kCaught)) continue;
    std::uint64_t value = 0;
    if (std::from_chars(begin, at, value).ptr != at || begin == at) return false;
    if (field == kChildrensFaults ? value != 0 : (value & watched) != 0) return false;
  }
  return true;
}

}  // namespace

std::string ChildExit::describe() const {
  if (signal == 0) return "exit code " + std::to_string(code);
  const char* name = sigabbrev_np(signal);
  return "killed by SIG" + std::string{name ? name : "?"} + " (" + std::to_string(signal) + ")";
}

ChildProcess::ChildProcess(const ChildOptions& options) : grace_{options.grace} {
  // Inherited as ignored (a parent may leave it so), ends of children could not be waited for.
  if (struct sigaction now{}; sigaction(SIGCHLD, nullptr, &now) == 0 && now.sa_handler == SIG_IGN)
    signal(SIGCHLD, SIG_DFL);
  auto arguments = options.argv;
  auto variables = merged_environment(options.environment, options.environment_alone);
  const auto argv = pointers(arguments), environment = pointers(variables);
  std::array<int, 2> failure{};  // the child writes errno here when exec fails; exec itself closes it
  if (pipe2(failure.data(), O_CLOEXEC) != 0) throw system_error("cannot start " + options.argv.at(0), errno);
  pid_ = start_own_child(options, argv.data(), environment.data(), failure);
  const int fork_error = errno;
  close(failure[1]);
  int why = 0;
  ssize_t got = 0;
  while (pid_ > 0 && (got = read(failure[0], &why, sizeof why)) < 0 && errno == EINTR) {
  }
  close(failure[0]);
  if (pid_ < 0) throw system_error("cannot start " + options.argv.at(0), fork_error);
  if (got == sizeof why) {
    reap_own_child(pid_, nullptr);
    throw system_error("cannot start " + options.argv.at(0), why);
  }
  end_descriptor_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
}

ChildProcess::~ChildProcess() {
  if (!poll()) {
    terminate();
    if (!wait(grace_)) {
      kill();
      wait();
    }
  }
  if (end_descriptor_ >= 0) close(end_descriptor_);
}

std::optional<ChildExit> ChildProcess::poll() {
  if (exit_) return exit_;
  siginfo_t ended{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      ended.si_pid != pid_)
    return std::nullopt;
  const bool unheeding = ended.si_code == CLD_EXITED && ended.si_status == 0 && is_unheeding(pid_);
  ::kill(-pid_, SIGKILL);  // what it left behind in its group, before its id can be used again
  int status = 0;
  reap_own_child(pid_, &status);
  exit_ = WIFSIGNALED(status) ? ChildExit{.code = 0, .signal = WTERMSIG(status)}
                              : ChildExit{.code = WEXITSTATUS(status), .signal = 0, .unheeding = unheeding};
  return exit_;
}

std::optional<ChildExit> ChildProcess::wait(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (auto pause = 1ms;; pause = std::min(pause * 2, 50ms)) {
    if (auto ended = poll()) return ended;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left <= 0ms) return std::nullopt;
    if (end_descriptor_ < 0) {
      std::this_thread::sleep_for(std::min(pause, left));
    } else {
      constexpr std::chrono::milliseconds kLongest = std::chrono::hours{1};
      pollfd watched{end_descriptor_, POLLIN, 0};
      ::poll(&watched, 1, static_cast<int>(std::min(left, kLongest).count()));
    }
  }
}

ChildExit ChildProcess::wait() {
  for (;;)
    if (auto ended = wait(std::chrono::hours{1})) return *ended;
}

void ChildProcess::signal_group(int signal) {
  if (!exit_) ::kill(-pid_, signal);
}
void ChildProcess::terminate() { signal_group(SIGTERM); }
void ChildProcess::kill() { signal_group(SIGKILL); }

void ChildProcess::reap_orphan(pid_t pid) {
  auto children = own_children().lock();
  if (children->starting == 0 && !children->ids.contains(pid)) waitpid(pid, nullptr, WNOHANG);
}

bool ChildProcess::may_have_orphans() {
  // Orphans become children of the first thread: what other threads have started is not among them. With the
  // lock, so that no child goes from the list while it is read, which might hide the next.
  auto children = own_children().lock();
  std::string list;
  try {
    const std::string self = std::to_string(getpid());
    list = read_file("/proc/self/task/" + self + "/children");
  } catch (const Error&) {
    return true;  // a kernel without it
  }
  const char *at = list.data(), *const end = list.data() + list.size();
  while (at != end) {
    pid_t id = 0;
    const auto [behind, failed] = std::from_chars(at, end, id);
    if (failed != std::errc{} || !children->ids.contains(id)) return true;
    at = behind;
    while (at != end && *at == ' ') ++at;
  }
  return false;
}

std::string run_program(const std::vector<std::string>& argv, const std::string& input,
                        std::chrono::milliseconds timeout, const std::stop_token& stop) {
  std::array<int, 2> in{}, out{}, err{};
  if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0 ||
      pipe2(err.data(), O_CLOEXEC) != 0)
    throw system_error("cannot start " + argv.at(0), errno);
  const auto close_all = [&] {
    for (const int fd : {in[0], in[1], out[0], out[1], err[0], err[1]})
      if (fd >= 0) close(fd);
  };
  std::optional<ChildProcess> child;
  ChildOptions options;
  options.argv = argv;
  options.stdin_fd = in[0], options.stdout_fd = out[1], options.stderr_fd = err[1];
  try {
    child.emplace(options);
  } catch (...) {
    close_all();
    throw;
  }
  for (int* fd : {&in[0], &out[1], &err[1]}) close(*fd), *fd = -1;
  fcntl(in[1], F_SETFL, O_NONBLOCK);
  signal(SIGPIPE, SIG_IGN);  // a program that does not read its stdin must not end us

  std::string output, errors;
  std::size_t sent = 0;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::array<char, 65536> buffer;
  while (out[0] >= 0 || err[0] >= 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      child->kill();
      close_all();
      throw Error{Code::kDeadlineExceeded,
                  argv.at(0) + " gave no answer within " + std::to_string(timeout.count()) + " ms"};
    }
    if (stop.stop_requested()) {
      child->kill();
      close_all();
      throw Error{Code::kCancelled, argv.at(0) + " was stopped before it had answered"};
    }
    if (in[1] >= 0 && sent == input.size()) close(in[1]), in[1] = -1;
    std::array<pollfd, 3> watched{pollfd{in[1], POLLOUT, 0}, pollfd{out[0], POLLIN, 0},
                                  pollfd{err[0], POLLIN, 0}};
    // What it started may hold its pipes open after its end: then what is there now is all.
    const bool ended = child->poll().has_value();
    const int ready = ::poll(watched.data(), watched.size(),
                             ended ? 0 : static_cast<int>(std::min<long long>(left.count(), 100)));
    if (ended && ready == 0) break;
    if (watched[0].revents != 0) {
      const ssize_t wrote = write(in[1], input.data() + sent, input.size() - sent);
      if (wrote > 0) sent += static_cast<std::size_t>(wrote);
      if (wrote < 0 && errno != EAGAIN && errno != EINTR) sent = input.size();
    }
    const auto drain = [&](int& fd, short events, std::string& into) {
      if (fd < 0 || events == 0) return;
      const ssize_t got = read(fd, buffer.data(), buffer.size());
      if (got > 0) into.append(buffer.data(), static_cast<std::size_t>(got));
      if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) close(fd), fd = -1;
    };
    drain(out[0], watched[1].revents, output);
    drain(err[0], watched[2].revents, errors);
  }
  close_all();
  const ChildExit ended = child->wait();
  if (!ended.ok()) {
    while (!errors.empty() && errors.back() == '\n') errors.pop_back();
    if (errors.size() > 2000) errors = "…" + errors.substr(errors.size() - 2000);
    throw Error{Code::kInternal,
                argv.at(0) + " ended with " + ended.describe() + (errors.empty() ? "" : ": " + errors)};
  }
  return output;
}

std::optional<std::string> own_words(const Error& error, std::string_view program) {
  const std::string text = error.what(), name = ": " + std::string{program} + ": ";
  const auto found = text.rfind(name);
  if (found == std::string::npos) return std::nullopt;
  return text.substr(found + name.size());
}

}  // namespace abl
