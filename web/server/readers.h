// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <stop_token>
#include <vector>

#include "base/guarded.h"
#include "storage/database.h"
#include "views/table_cache.h"
#include "web/server/answer.h"
#include "web/server/net.h"
#include "web/server/target.h"

namespace abl::web {

/// The threads that answer API requests, each with a read-only connection, so that a slow query holds up
/// neither the network thread nor a writer. Requests that are known to be quick (`is_quick`) have a thread of
/// their own: curves of a thousand runs do not keep anybody from seeing the workers. What waits is bounded,
/// and a query ends where nobody waits for it any more. Thread: the network thread.
class Readers {
 public:
  /// Opens the first connection. Throws: as storage::Database.
  explicit Readers(std::filesystem::path store);
  ~Readers() { stop(); }

  /// Runs the query on a thread and comes back on the caller's. `abandoned`: nobody waits for the answer,
  /// which is then any. Too many are waiting: an answer that says so.
  net::awaitable<Answer> answer(Target target, std::stop_token abandoned);
  /// Whether the store was written since the last call, or since the opening. One caller at a time.
  net::awaitable<bool> changed();
  /// Ends the queries that are under way, and those that wait.
  void abandon_all() { abandoned_.request_stop(); }
  /// The same, and waits for it.
  void stop();

 private:
  /// Threads and what waits for them.
  struct Lane {
    explicit Lane(std::size_t threads) : pool{threads} {}
    net::thread_pool pool;
    std::atomic<std::size_t> under_way = 0;  ///< waiting ones among them
  };
  template <class T>
  net::awaitable<T> on_pool(Lane& lane, std::function<T()> work);
  Answer query(const Target& target, const std::stop_token& abandoned);
  std::unique_ptr<storage::Database> take();

  std::filesystem::path store_;
  views::TableCache tables_;
  Guarded<std::vector<std::unique_ptr<storage::Database>>> idle_;
  storage::Database watched_;  // PRAGMA data_version counts the commits of others than its own connection
  std::int64_t seen_ = watched_.data_version();
  std::stop_source abandoned_;
  Lane quick_{1}, slow_{2};
};

}  // namespace abl::web
