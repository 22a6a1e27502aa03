// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/held_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"

namespace abl::agent {
namespace fs = std::filesystem;

HeldFile::HeldFile(const fs::path& file) {
  std::error_code failed;
  const fs::path real = fs::canonical(file, failed);
  if (failed) return;
  descriptor_ = ::open(real.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor_ < 0 && errno != ENOENT && errno != ENOTDIR && errno != EACCES && errno != ELOOP)
    throw system_error("cannot open " + file.string(), errno);
  real_ = fs::read_symlink(path(), failed);
}

HeldFile::~HeldFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool HeldFile::is_regular() const {
  struct stat now {};
  return descriptor_ >= 0 && ::fstat(descriptor_, &now) == 0 && S_ISREG(now.st_mode);
}

std::uint64_t HeldFile::bytes() const {
  struct stat now {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &now) != 0) return 0;
  return static_cast<std::uint64_t>(now.st_size);
}

bool HeldFile::lies_under(const fs::path& root) const {
  std::error_code failed;
  const fs::path real_root = fs::canonical(root, failed);
  return !failed && std::mismatch(real_root.begin(), real_root.end(), real_.begin(), real_.end()).first ==
                        real_root.end();
}

fs::path HeldFile::path() const { return fmt::format("/proc/self/fd/{}", descriptor_); }

}  // namespace abl::agent
