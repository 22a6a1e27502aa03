// SPDX-License-Identifier: Apache-2.0
#include "cli/home_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace abl::cli {
namespace {

struct flock whole_file() {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  return range;
}

}  // namespace

std::optional<HomeLock> HomeLock::acquire(const std::filesystem::path& file) {
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) throw system_error("cannot open " + file.string(), errno);
  HomeLock lock{fd};
  struct flock range = whole_file();
  if (fcntl(fd, F_OFD_SETLK, &range) != 0) return std::nullopt;
  return lock;
}

bool HomeLock::is_held(const std::filesystem::path& file) {
  const int fd = open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  const HomeLock closer{fd};
  struct flock range = whole_file();
  return fcntl(fd, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}

HomeLock::~HomeLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace abl::cli
