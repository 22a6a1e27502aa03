// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "base/file_lock.h"

namespace abl::scheduler {

/// One scheduler a store: a lock on `<store>.lock`, held until the object, or the process, ends. A file that
/// it made goes with it unless `keep` is called.
class StoreLock {
 public:
  /// Throws: Error{kUnavailable} naming the process that has the store.
  explicit StoreLock(const std::filesystem::path& store);
  void keep() { lock_.remove_after(false); }

 private:
  FileLock lock_;
};

}  // namespace abl::scheduler
