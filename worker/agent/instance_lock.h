// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace abl::agent {

/// One program for each home: held as long as the object lives, gone with the process however it ends.
class InstanceLock {
 public:
  /// Throws: Error{kUnavailable} when another process holds the lock on `file`.
  explicit InstanceLock(const std::filesystem::path& file);
  ~InstanceLock();
  InstanceLock(const InstanceLock&) = delete;
  InstanceLock& operator=(const InstanceLock&) = delete;

 private:
  int descriptor_;
};

}  // namespace abl::agent
