// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "base/guarded.h"
#include "storage/database.h"
#include "web/server/answer.h"
#include "web/server/net.h"
#include "web/server/target.h"

namespace abl::web {

/// A few threads that answer API requests, each with a read-only connection, so that a slow query holds up
/// neither the network thread nor a writer.
class Readers {
 public:
  /// Opens the first connection. Throws: as storage::Database.
  Readers(std::filesystem::path store, int threads);
  ~Readers() { stop(); }

  /// Runs the query on a thread of the pool and comes back on the caller's.
  net::awaitable<Answer> answer(Target target);
  /// Whether the store was written since the last call, or since the opening. Thread: one caller at a time.
  net::awaitable<bool> changed();
  /// Waits for the queries that are under way.
  void stop();

 private:
  template <class T>
  net::awaitable<T> on_pool(std::function<T()> work);
  Answer query(const Target& target);
  std::unique_ptr<storage::Database> take();

  std::filesystem::path store_;
  Guarded<std::vector<std::unique_ptr<storage::Database>>> idle_;
  storage::Database watched_;  // PRAGMA data_version counts the commits of others than its own connection
  std::int64_t seen_ = watched_.data_version();
  net::thread_pool pool_;
};

}  // namespace abl::web
