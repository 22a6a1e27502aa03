// SPDX-License-Identifier: Apache-2.0
#include "scheduler/lane.h"

#include <utility>

namespace abl::scheduler {

void Lane::post(storage::ReadPool::Job job, std::stop_token stop) {
  {
    const std::lock_guard lock{mutex_};
    if (running_ == width_) {
      waiting_.push_back({std::move(job), std::move(stop)});
      return;
    }
    ++running_;
  }
  start({std::move(job), std::move(stop)});
}

bool Lane::full() {
  constexpr std::size_t kMostWaiting = 1000;
  const std::lock_guard lock{mutex_};
  return waiting_.size() >= kMostWaiting;
}

void Lane::start(Entry entry) {
  pool_.post(
      [this, job = std::move(entry.job)](storage::Database& db) {
        job(db);
        start_next();
      },
      std::move(entry.stop));
}

void Lane::start_next() {
  Entry next;
  {
    const std::lock_guard lock{mutex_};
    if (waiting_.empty()) {
      --running_;
      return;
    }
    next = std::move(waiting_.front());
    waiting_.pop_front();
  }
  start(std::move(next));  // behind what the pool has been asked for meanwhile
}

}  // namespace abl::scheduler
