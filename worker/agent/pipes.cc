// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/pipes.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "base/error.h"

namespace abl::agent {
Pipes::Pipes() {
  for (const auto& [read_end, write_end] : {std::pair{&out_, &child_out_}, std::pair{&err_, &child_err_}}) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      const int why = errno;
      close_all();
      throw system_error("cannot make a pipe", why);
    }
    *read_end = ends[0], *write_end = ends[1];
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
}

void Pipes::child_has_started() { close_end(child_out_), close_end(child_err_); }

bool Pipes::read(TrainerOutput& output, int wake, int program_end, bool has_to_wait) {
  std::array<pollfd, 4> watched{pollfd{has_to_wait ? -1 : out_, POLLIN, 0},
                                pollfd{has_to_wait ? -1 : err_, POLLIN, 0}, pollfd{wake, POLLIN, 0},
                                pollfd{program_end, POLLIN, 0}};
  ::poll(watched.data(), watched.size(), static_cast<int>(kLook.count()));
  eventfd_t ignored = 0;
  if (watched[2].revents != 0) ::eventfd_read(wake, &ignored);
  return !has_to_wait && read_some(output);
}

bool Pipes::read_some(TrainerOutput& output) {
  const std::string_view out = read_end(out_);
  output.read_stdout(out);
  const bool any = !out.empty();
  const std::string_view err = read_end(err_);
  output.read_stderr(err);
  return any || !err.empty();
}

void Pipes::close_end(int& end) {
  if (end >= 0) ::close(std::exchange(end, -1));
}

void Pipes::close_all() {
  for (int* end : {&out_, &err_, &child_out_, &child_err_}) close_end(*end);
}

std::string_view Pipes::read_end(int& end) {
  if (end < 0) return {};
  const ssize_t got = ::read(end, buffer_.data(), buffer_.size());
  if (got > 0) return {buffer_.data(), static_cast<std::size_t>(got)};
  if (got == 0 || (errno != EAGAIN && errno != EINTR)) close_end(end);
  return {};
}

}  // namespace abl::agent
