// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "storage/database.h"

namespace abl::scheduler {

/// A few threads, each with a read-only connection: queries stay off gRPC's threads and off the writer's.
/// Thread: `post` from any. The file must exist.
class ReadPool {
 public:
  using Job = std::function<void(storage::Database&)>;

  ReadPool(const std::filesystem::path& file, int threads);
  ~ReadPool();  ///< runs what was posted

  /// `job` reports its own errors: it must not throw.
  void post(Job job);

 private:
  void run(storage::Database& db);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> queue_;
  bool stopping_ = false;
  std::vector<std::unique_ptr<storage::Database>> connections_;
  std::vector<std::thread> threads_;
};

}  // namespace abl::scheduler
