// SPDX-License-Identifier: Apache-2.0
#include "scheduler/store_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/error.h"

namespace abl::scheduler {

StoreLock::StoreLock(const std::filesystem::path& store) : file_{store.string() + ".lock"} {
  do {
    if (fd_ >= 0) ::close(fd_);
    fd_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    made_ = fd_ >= 0;
    if (!made_) fd_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd_ < 0) throw system_error("cannot open " + file_, errno);
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      char holder[32] = {};
      const ssize_t size = ::pread(fd_, holder, sizeof holder - 1, 0);
      ::close(fd_);
      throw Error{Code::kUnavailable,
                  fmt::format("store {}{} is in use by another scheduler: use or stop that one",
                              store.string(), size > 0 ? fmt::format(" (process {})", holder) : "")};
    }
  } while (!in_place());  // it went with a scheduler that was refused at that moment
  const std::string me = std::to_string(::getpid());  // for the message above alone: the lock is what counts
  if (::ftruncate(fd_, 0) == 0) [[maybe_unused]]
    const ssize_t written = ::pwrite(fd_, me.data(), me.size(), 0);
}

StoreLock::~StoreLock() {
  if (made_) ::unlink(file_.c_str());  // while it is held: nobody else has it
  ::close(fd_);
}

/// Whether the path still leads to the file that is locked.
bool StoreLock::in_place() const {
  struct stat locked {
  }, there{};
  return ::fstat(fd_, &locked) == 0 && ::stat(file_.c_str(), &there) == 0 && locked.st_ino == there.st_ino &&
         locked.st_dev == there.st_dev;
}

}  // namespace abl::scheduler
