// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <vector>

namespace abl::agent {

/// Leaves this program so many descriptors, until it goes.
class FewDescriptors {
 public:
  explicit FewDescriptors(std::size_t left) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = 256;
    setrlimit(RLIMIT_NOFILE, &few);
    for (int fd = 0; fd >= 0;)
      if (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC); fd >= 0) taken_.push_back(fd);
    for (; left > 0 && !taken_.empty(); --left, taken_.pop_back()) ::close(taken_.back());
  }
  ~FewDescriptors() {
    for (const int fd : taken_) ::close(fd);
    setrlimit(RLIMIT_NOFILE, &before_);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
  std::vector<int> taken_;
};

}  // namespace abl::agent
