// SPDX-License-Identifier: Apache-2.0
#include "launchers/supervised_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/last_lines.h"

namespace abl::launchers {

using namespace std::chrono_literals;

std::optional<Milliseconds> RestartPolicy::ended(Milliseconds lived, const ChildExit& exit) {
  quick_failures_ = lived < kQuick ? quick_failures_ + 1 : 0;
  const bool bad_input = exit.signal == 0 && exit.code == kExitUsage;
  if (bad_input || quick_failures_ >= kQuickFailures) return std::nullopt;
  return std::min(kLongestPause, kFirstPause * (1 << std::max(0, quick_failures_ - 1)));
}

SupervisedProgram::SupervisedProgram(std::string name, std::vector<std::string> argv,
                                     std::filesystem::path log)
    : name_{std::move(name)}, argv_{std::move(argv)}, log_{std::move(log)} {}

void SupervisedProgram::start(Time now) {
  const int fd = open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) throw system_error("cannot write " + log_.string(), errno);
  log_start_ = std::filesystem::file_size(log_);
  ChildOptions options;
  options.argv = argv_;
  options.stdout_fd = options.stderr_fd = fd;
  try {
    child_ = std::make_unique<ChildProcess>(options);
  } catch (...) {
    close(fd);
    throw;
  }
  close(fd);
  started_ = now;
  restart_at_.reset();
}

std::optional<std::string> SupervisedProgram::tick(Time now) {
  if (restart_at_) {
    if (now < *restart_at_) return std::nullopt;
    start(now);
    return fmt::format("{} started again", name_);
  }
  const auto exit = child_ ? child_->poll() : std::nullopt;
  if (!exit) return std::nullopt;
  const auto pause = policy_.ended(now - started_, *exit);
  if (pause) {
    restart_at_ = now + *pause;
    return fmt::format("{} ended ({}); starting it again in {} ms, its log is {}", name_, exit->describe(),
                       pause->count(), log_.string());
  }
  const bool bad_input = exit->signal == 0 && exit->code == kExitUsage;
  throw Error{bad_input ? Code::kInvalidArgument : Code::kInternal,
              fmt::format("{} ended ({}{}), its log is {}{}", name_, exit->describe(),
                          bad_input ? ""
                                    : fmt::format(", the {}th time in a row soon after its start",
                                                  policy_.quick_failures()),
                          log_.string(), end_of_log())};
}

void SupervisedProgram::stop(Milliseconds grace, const std::function<bool()>& hurry) {
  restart_at_.reset();
  if (!child_) return;
  child_->terminate();
  for (auto waited = 0ms; waited < grace && !child_->wait(100ms) && !hurry(); waited += 100ms) {
  }
  if (!child_->poll()) child_->kill();
  child_->wait();
  child_.reset();
}

std::string SupervisedProgram::end_of_log() const {
  constexpr std::streamoff kBytes = 4096;
  constexpr std::size_t kLines = 8;
  std::ifstream log{log_, std::ios::binary};
  log.seekg(0, std::ios::end);
  const std::streamoff end = log.tellg();
  log.seekg(std::max(static_cast<std::streamoff>(log_start_), end - kBytes));
  const std::string bytes{std::istreambuf_iterator<char>{log}, {}};
  std::string text;
  for (const std::string& line : last_lines(bytes, kLines)) text += "\n  " + line;
  return text;
}

}  // namespace abl::launchers
