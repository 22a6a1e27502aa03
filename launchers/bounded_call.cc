// SPDX-License-Identifier: Apache-2.0
#include "launchers/bounded_call.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/child_process.h"
#include "base/error.h"

namespace abl::launchers {
namespace {

constexpr std::size_t kMostSaid = std::size_t{256} << 10;

Error last_error(const std::string& what) {
  return Error{Code::kUnavailable, fmt::format("{}: {}", what, std::strerror(errno))};
}

struct Pipe {
  OpenFile read, write;
};
Pipe make_pipe(const std::string& program) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw last_error("cannot start " + program);
  return {OpenFile{ends[0]}, OpenFile{ends[1]}};
}

}  // namespace

OpenFile OpenFile::of_text(const std::string& text) {
  OpenFile file{::memfd_create("input", MFD_CLOEXEC)};
  if (file.fd() < 0) throw last_error("no memory for what a program is to read");
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(file.fd(), text.data() + done, text.size() - done);
    if (wrote < 0 && errno != EINTR) throw last_error("no memory for what a program is to read");
    if (wrote > 0) done += static_cast<std::size_t>(wrote);
  }
  if (::lseek(file.fd(), 0, SEEK_SET) != 0) throw last_error("what a program is to read");
  return file;
}

OpenFile OpenFile::to_read(const std::string& name) {
  OpenFile file{::open(name.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd() < 0) throw last_error(name);
  return file;
}

OpenFile& OpenFile::operator=(OpenFile&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}

OpenFile::~OpenFile() {
  if (fd_ >= 0) ::close(fd_);
}

CallAnswer call_program(const std::vector<std::string>& argv, const OpenFile& input, Milliseconds limit,
                        const std::stop_token& stop) {
  Pipe out = make_pipe(argv.at(0)), err = make_pipe(argv.at(0));
  ChildOptions options;
  options.argv = argv;
  options.stdin_fd = input.fd(), options.stdout_fd = out.write.fd(), options.stderr_fd = err.write.fd();
  ChildProcess child{options};
  out.write = OpenFile{}, err.write = OpenFile{};

  CallAnswer answer;
  const auto end = [&](std::string why) {
    child.kill();
    answer.code = -1;
    answer.ended = std::move(why);
    return answer;
  };
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (out.read.fd() >= 0 || err.read.fd() >= 0) {
    const auto left = std::chrono::ceil<Milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return end(fmt::format("no answer within {} s", limit.count() / 1000));
    if (stop.stop_requested()) return end("it was stopped before it had answered");
    // what it started may hold its pipes open after its end: then what is there now is all
    const bool ended = child.poll().has_value();
    std::array<pollfd, 2> watched{pollfd{out.read.fd(), POLLIN, 0}, pollfd{err.read.fd(), POLLIN, 0}};
    const int ready = ::poll(watched.data(), watched.size(),
                             ended ? 0 : static_cast<int>(std::min<long long>(left.count(), 100)));
    if (ended && ready == 0) break;
    const auto drain = [](OpenFile& from, short events, std::string& into) {
      if (from.fd() < 0 || events == 0) return;
      std::array<char, 16384> buffer;
      const ssize_t got = ::read(from.fd(), buffer.data(), buffer.size());
      if (got > 0) into.append(buffer.data(), static_cast<std::size_t>(got));
      if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) from = OpenFile{};
    };
    drain(out.read, watched[0].revents, answer.out);
    drain(err.read, watched[1].revents, answer.err);
    if (answer.out.size() > kMostSaid || answer.err.size() > kMostSaid)
      return end(fmt::format("it says more than {} KiB", kMostSaid >> 10));
  }
  const auto ended = child.wait(Milliseconds{5000});
  if (!ended) return end("it does not end");
  answer.code = ended->signal != 0 ? 128 + ended->signal : ended->code;
  return answer;
}

}  // namespace abl::launchers
