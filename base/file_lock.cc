// SPDX-License-Identifier: Apache-2.0
#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/error.h"

namespace abl {
namespace {

struct flock whole_file() {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  return range;
}

}  // namespace

FileLock::FileLock(std::filesystem::path file, mode_t mode, const char* failure) : file_{std::move(file)} {
  descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  made_ = descriptor_ >= 0;
  if (!made_) descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, mode);
  if (descriptor_ < 0) throw system_error(std::string{failure} + file_.string(), errno);
}

FileLock::FileLock(FileLock&& other) noexcept
    : file_{std::move(other.file_)},
      descriptor_{std::exchange(other.descriptor_, -1)},
      made_{other.made_},
      remove_{other.remove_} {}

FileLock::~FileLock() {
  if (descriptor_ < 0) return;
  if (remove_) ::unlink(file_.c_str());  // while it is held: nobody else has it
  ::close(descriptor_);
}

bool FileLock::lock(Kind kind, bool wait) const {
  int result;
  do {
    struct flock range = whole_file();
    result = kind == Kind::kFlock ? ::flock(descriptor_, wait ? LOCK_EX : LOCK_EX | LOCK_NB)
                                  : ::fcntl(descriptor_, wait ? F_OFD_SETLKW : F_OFD_SETLK, &range);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

/// Whether the path still leads to the file that is locked: who had it before may have removed it.
bool FileLock::in_place() const {
  struct stat locked {
  }, there{};
  return ::fstat(descriptor_, &locked) == 0 && ::stat(file_.c_str(), &there) == 0 &&
         locked.st_ino == there.st_ino && locked.st_dev == there.st_dev;
}

std::optional<FileLock> FileLock::try_lock(const std::filesystem::path& file, Kind kind) {
  for (;;) {
    FileLock lock{file, 0600, "cannot open "};
    if (!lock.lock(kind, /*wait=*/false)) {
      if (errno == EWOULDBLOCK || errno == EACCES) return std::nullopt;
      throw system_error("cannot lock " + file.string(), errno);
    }
    if (lock.in_place()) return lock;
  }
}

FileLock FileLock::wait(const std::filesystem::path& file, mode_t mode) {
  for (;;) {
    FileLock lock{file, mode, "cannot write "};
    if (!lock.lock(Kind::kFlock, /*wait=*/true)) throw system_error("cannot lock " + file.string(), errno);
    if (lock.in_place()) return lock;
  }
}

bool FileLock::is_held(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return false;
  struct flock range = whole_file();
  const bool held = ::fcntl(descriptor, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
  ::close(descriptor);
  return held;
}

void FileLock::sign() const {
  const std::string me = std::to_string(::getpid());  // for a message alone: the lock is what counts
  if (::ftruncate(descriptor_, 0) == 0) [[maybe_unused]]
    const ssize_t written = ::pwrite(descriptor_, me.data(), me.size(), 0);
}

}  // namespace abl
