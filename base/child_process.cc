// SPDX-License-Identifier: Apache-2.0
#include "base/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/guarded.h"

extern char** environ;

namespace abl {
namespace {

using namespace std::chrono_literals;

constexpr int kOldKernelsDescriptors = 4096;

/// What ChildProcess has started and not reaped. A number is taken in and let go with the lock, together with
/// the call that gives or frees it.
Guarded<std::set<pid_t>>& own_children() {
  static auto& children = *new Guarded<std::set<pid_t>>;  // for children that end at exit, too
  return children;
}

/// Throws nothing: -1 and errno, as fork.
pid_t start_own_child() {
  auto children = own_children().lock();
  const pid_t pid = fork();
  if (pid > 0) children->insert(pid);
  return pid;
}

void reap_own_child(pid_t pid, int* status) {
  auto children = own_children().lock();
  waitpid(pid, status, 0);
  children->erase(pid);
}

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry; ++entry) {
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

/// After fork, before exec: only async-signal-safe calls. Returns errno of the step that failed.
int become(const ChildOptions& options, pid_t parent, char* const* argv, char* const* environment) {
  setpgid(0, 0);
  if (options.die_with_parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);  // the parent died between fork and prctl
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);
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
  auto variables = merged_environment(options.environment);
  const auto argv = pointers(arguments), environment = pointers(variables);
  std::array<int, 2> failure{};  // the child writes errno here when exec fails; exec itself closes it
  if (pipe2(failure.data(), O_CLOEXEC) != 0) throw system_error("cannot start " + options.argv.at(0), errno);
  const pid_t parent = getpid();
  pid_ = start_own_child();
  if (pid_ == 0) {
    close(failure[0]);
    const int why = become(options, parent, argv.data(), environment.data());
    [[maybe_unused]] const auto written = write(failure[1], &why, sizeof why);
    _exit(127);
  }
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
}

ChildProcess::~ChildProcess() {
  if (!poll()) {
    terminate();
    if (!wait(grace_)) {
      kill();
      wait();
    }
  }
}

std::optional<ChildExit> ChildProcess::poll() {
  if (exit_) return exit_;
  siginfo_t ended{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      ended.si_pid != pid_)
    return std::nullopt;
  ::kill(-pid_, SIGKILL);  // what it left behind in its group, before its id can be used again
  int status = 0;
  reap_own_child(pid_, &status);
  exit_ = WIFSIGNALED(status) ? ChildExit{.code = 0, .signal = WTERMSIG(status)}
                              : ChildExit{.code = WEXITSTATUS(status), .signal = 0};
  return exit_;
}

std::optional<ChildExit> ChildProcess::wait(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (auto pause = 1ms;; pause = std::min(pause * 2, 50ms)) {
    if (auto ended = poll()) return ended;
    if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(pause);
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
  if (!children->contains(pid)) waitpid(pid, nullptr, WNOHANG);
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
