// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/instance_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace abl::agent {

InstanceLock::InstanceLock(const std::filesystem::path& file)
    : descriptor_{::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)} {
  if (descriptor_ < 0) throw system_error("cannot open " + file.string(), errno);
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  const int why = errno;
  ::close(descriptor_);
  if (why == EWOULDBLOCK)
    throw Error{Code::kUnavailable, file.parent_path().string() +
                                        " is in use by another worker: stop it, or pass another --home"};
  throw system_error("cannot lock " + file.string(), why);
}

InstanceLock::~InstanceLock() { ::close(descriptor_); }

}  // namespace abl::agent
