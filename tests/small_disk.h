// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "tests/temporary_folder.h"

namespace abl {

/// Who is not root may mount as root of a user namespace of its own, where the system allows that. Entered
/// when the program starts: it must not have threads yet.
inline const bool kMayMount = [] {
  const auto user = ::geteuid(), group = ::getegid();
  if (user == 0) return true;
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  std::ofstream{"/proc/self/setgroups"} << "deny";
  std::ofstream{"/proc/self/uid_map"} << "0 " + std::to_string(user) + " 1";
  std::ofstream{"/proc/self/gid_map"} << "0 " + std::to_string(group) + " 1";
  return ::geteuid() == 0;
}();

/// A folder on a disk of 2 MiB: a tmpfs where the test may mount one, otherwise a limit on every file's size.
class SmallDisk {
 public:
  static constexpr rlim_t kBytes = 2 << 20;

  SmallDisk() : mounted_{kMayMount && ::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=2m") == 0} {
    if (mounted_) return;
    ::signal(SIGXFSZ, SIG_IGN);  // write fails instead
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{.rlim_cur = kBytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallDisk() {
    if (mounted_)
      ::umount2(folder_.path().c_str(), MNT_DETACH);
    else
      ::setrlimit(RLIMIT_FSIZE, &before_);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  const std::filesystem::path& path() const { return folder_.path(); }
  /// With a limit on each file's size alone, several files still fit.
  bool is_whole() const { return mounted_; }
  void free_space() {
    if (mounted_)
      ASSERT_EQ(::mount("tmpfs", folder_.path().c_str(), "tmpfs", MS_REMOUNT, "size=32m"), 0);
    else
      ::setrlimit(RLIMIT_FSIZE, &before_);
  }

 private:
  TemporaryFolder folder_;
  const bool mounted_;
  rlimit before_{};
};

}  // namespace abl
