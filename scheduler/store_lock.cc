// SPDX-License-Identifier: Apache-2.0
#include "scheduler/store_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/error.h"

namespace abl::scheduler {

StoreLock::StoreLock(const std::filesystem::path& store) {
  const std::string file = store.string() + ".lock";
  fd_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd_ < 0) throw system_error("cannot open " + file, errno);
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    char holder[32] = {};
    const ssize_t size = ::pread(fd_, holder, sizeof holder - 1, 0);
    ::close(fd_);
    throw Error{Code::kUnavailable,
                fmt::format("another scheduler has the store {}{}: use it, or stop it first", store.string(),
                            size > 0 ? fmt::format(" (process {})", holder) : "")};
  }
  const std::string me = std::to_string(::getpid());  // for the message above alone: the lock is what counts
  if (::ftruncate(fd_, 0) == 0) [[maybe_unused]]
    const ssize_t written = ::pwrite(fd_, me.data(), me.size(), 0);
}

StoreLock::~StoreLock() { ::close(fd_); }

}  // namespace abl::scheduler
