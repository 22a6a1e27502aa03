// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace abl::scheduler {

/// One scheduler a store: a lock on `<store>.lock`, held until the object, or the process, ends.
class StoreLock {
 public:
  /// Throws: Error{kUnavailable} naming the process that has the store.
  explicit StoreLock(const std::filesystem::path& store);
  ~StoreLock();
  StoreLock(const StoreLock&) = delete;
  StoreLock& operator=(const StoreLock&) = delete;

 private:
  int fd_;
};

}  // namespace abl::scheduler
