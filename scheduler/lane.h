// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <mutex>
#include <stop_token>

#include "storage/read_pool.h"

namespace abl::scheduler {

/// Work on a pool that takes a few of its threads at most, however much of it there is: what may take long is
/// posted to one of these, so that a quick question always finds a thread. To be kept until the pool has
/// finished. Thread: any.
class Lane {
 public:
  Lane(storage::ReadPool& pool, int width) : pool_{pool}, width_{width} {}

  /// As `ReadPool::post`.
  void post(storage::ReadPool::Job job, std::stop_token stop = {});
  /// More wait already than can be done soon.
  bool full();

 private:
  struct Entry {
    storage::ReadPool::Job job;
    std::stop_token stop;
  };
  void start(Entry entry);
  void start_next();

  storage::ReadPool& pool_;
  const int width_;
  std::mutex mutex_;
  std::deque<Entry> waiting_;
  int running_ = 0;
};

}  // namespace abl::scheduler
