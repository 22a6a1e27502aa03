// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace abl::scheduler {

/// One scheduler a store: a lock on `<store>.lock`, held until the object, or the process, ends. A file that
/// it made goes with it unless `keep` is called.
class StoreLock {
 public:
  /// Throws: Error{kUnavailable} naming the process that has the store.
  explicit StoreLock(const std::filesystem::path& store);
  ~StoreLock();
  void keep() { made_ = false; }
  StoreLock(const StoreLock&) = delete;
  StoreLock& operator=(const StoreLock&) = delete;

 private:
  bool in_place() const;

  const std::string file_;
  int fd_ = -1;
  bool made_ = false;
};

}  // namespace abl::scheduler
