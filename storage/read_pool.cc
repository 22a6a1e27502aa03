// SPDX-License-Identifier: Apache-2.0
#include "storage/read_pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace abl::storage {

ReadPool::ReadPool(const std::filesystem::path& file, int threads) {
  // opened here, so that a file that cannot be read is an error of the start and not of the first query
  for (int i = 0; i < threads; ++i)
    connections_.push_back(std::make_unique<Database>(file, Database::Mode::kReadOnly));
  for (const auto& connection : connections_)
    threads_.emplace_back([this, db = connection.get()] { run(*db); });
}

void ReadPool::finish() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

std::size_t ReadPool::under_way() {
  const std::lock_guard lock{mutex_};
  return queue_.size() + running_;
}

bool ReadPool::full() {
  constexpr std::size_t kMostWaiting = 1000;
  const std::lock_guard lock{mutex_};
  return queue_.size() >= kMostWaiting;
}

void ReadPool::Room::resize(std::size_t bytes) {
  if (bytes > bytes_ && pool_.on_their_way_.fetch_add(bytes - bytes_) + bytes - bytes_ > kMostBytes) {
    pool_.on_their_way_ -= bytes - bytes_;
    throw Error{
        Code::kResourceExhausted,
        fmt::format("no room for an answer of {} MiB beside those that are being sent; ask for less, or "
                    "later",
                    std::max<std::size_t>(1, bytes >> 20))};
  }
  if (bytes < bytes_) pool_.on_their_way_ -= bytes_ - bytes;
  bytes_ = bytes;
}

void ReadPool::post(Job job, std::stop_token stop) {
  {
    const std::lock_guard lock{mutex_};
    queue_.push_back({std::move(job), std::move(stop)});
  }
  wake_.notify_one();
}

void ReadPool::run(Database& db) {
  std::unique_lock lock{mutex_};
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Entry entry = std::move(queue_.front());
    queue_.pop_front();
    ++running_;
    lock.unlock();
    {
      const Reading turn{db, [&] { return entry.stop.stop_requested() || abandoned_.stop_requested(); }};
      entry.job(db);
    }
    entry = {};  // without the lock: it may hold the last reference to a stream
    lock.lock();
    --running_;
  }
}

}  // namespace abl::storage
