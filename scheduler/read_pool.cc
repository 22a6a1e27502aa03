// SPDX-License-Identifier: Apache-2.0
#include "scheduler/read_pool.h"

namespace abl::scheduler {

ReadPool::ReadPool(const std::filesystem::path& file, int threads) {
  // opened here, so that a file that cannot be read is an error of the start and not of the first query
  for (int i = 0; i < threads; ++i)
    connections_.push_back(std::make_unique<storage::Database>(file, storage::Database::Mode::kReadOnly));
  for (const auto& connection : connections_)
    threads_.emplace_back([this, db = connection.get()] { run(*db); });
}

ReadPool::~ReadPool() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ReadPool::post(Job job) {
  {
    const std::lock_guard lock{mutex_};
    queue_.push_back(std::move(job));
  }
  wake_.notify_one();
}

void ReadPool::run(storage::Database& db) {
  std::unique_lock lock{mutex_};
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Job job = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    job(db);
    lock.lock();
  }
}

}  // namespace abl::scheduler
