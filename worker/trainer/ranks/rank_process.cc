// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/ranks/rank_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/error.h"

namespace abl::trainer {
namespace {

void close_end(int& end) {
  if (end >= 0) ::close(std::exchange(end, -1));
}

/// Both ends; the reading one never waits.
std::array<int, 2> new_pipe(int rank) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw system_error(fmt::format("cannot make a pipe for rank {}", rank), errno);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return ends;
}

}  // namespace

RankProcess::RankProcess(int rank, const std::vector<std::string>& argv, Events* events)
    : rank_{rank}, output_{rank, events}, ends_{-1, -1} {
  std::array<int, 2> out = new_pipe(rank), err{-1, -1};
  ends_[0] = out[0];
  try {
    err = new_pipe(rank);
    ends_[1] = err[0];
    ChildOptions options;
    options.argv = argv;
    options.stdout_fd = out[1], options.stderr_fd = err[1];
    options.grace = std::chrono::milliseconds{0};  // whoever has time to ask has asked before
    child_.emplace(options);
  } catch (...) {
    for (int* end : {&ends_[0], &ends_[1], &out[1], &err[1]}) close_end(*end);
    throw;
  }
  close_end(out[1]), close_end(err[1]);
}

RankProcess::~RankProcess() {
  child_.reset();
  for (int& end : ends_) close_end(end);
}

void RankProcess::read(int& end, void (RankOutput::*take)(std::string_view)) {
  std::array<char, 65536> buffer;
  while (end >= 0) {
    const ssize_t got = ::read(end, buffer.data(), buffer.size());
    if (got > 0) {
      (output_.*take)({buffer.data(), static_cast<std::size_t>(got)});
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else {
      if (got == 0 || errno != EAGAIN) close_end(end);
      return;
    }
  }
}

void RankProcess::look() {
  if (!exit_) exit_ = child_->poll();  // before the pipes are read: what it wrote last is in them then
  read(ends_[0], &RankOutput::read_stdout);
  read(ends_[1], &RankOutput::read_stderr);
}

void RankProcess::ask_to_stop() {
  if (!exit_) child_->terminate();
}

void RankProcess::kill() {
  if (exit_) return;
  killed_ = true;
  child_->kill();
}

bool RankProcess::failed() const {
  const auto& end = output_.said_end();
  if (end && end->status == "failed") return true;
  return exit_ && (!exit_->ok() || !end);
}

}  // namespace abl::trainer
