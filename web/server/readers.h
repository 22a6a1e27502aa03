// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>

#include "storage/database.h"
#include "storage/read_pool.h"
#include "views/table_cache.h"
#include "views/views.h"
#include "web/server/answer.h"
#include "web/server/deltas.h"
#include "web/server/encoding.h"
#include "web/server/net.h"
#include "web/server/target.h"

namespace abl::web {

/// The threads that answer API requests, each with a read-only connection, so that a slow query holds up
/// neither the network thread nor a writer. Requests that are known to be quick (`is_quick`) have a thread of
/// their own: curves of a thousand runs do not keep anybody from seeing the workers. What waits is bounded,
/// and a query ends where nobody waits for it any more.
/// Thread: the network thread.
class Readers {
 public:
  /// Opens the connections. Throws: as storage::Database.
  /// `log`: has what each commit touches, and outlives this; null: nobody knows.
  /// `others`: where the program keeps more; none: nowhere.
  Readers(const std::filesystem::path& store, const storage::ChangeLog* log, views::OtherPlaces others = {});
  ~Readers() { stop(); }

  /// Runs the query on a thread and comes back on the caller's. `abandoned`: nobody waits for the answer,
  /// which is then any. Too many are waiting: an answer that says so. `taken`: how it may be sent.
  net::awaitable<Answer> answer(Target target, Taken taken, std::stop_token abandoned);
  /// Whether the store was written since the last call, or since the opening. One caller at a time.
  net::awaitable<bool> changed();
  /// Ends the queries that are under way, and those that wait.
  void abandon_all();
  /// The same, and waits for it.
  void stop();

 private:
  template <class T>
  static net::awaitable<T> on_pool(storage::ReadPool& pool, std::function<T(storage::Database&)> work,
                                   std::stop_token abandoned = {});

  const views::OtherPlaces others_;
  views::TableCache tables_;
  Deltas deltas_;
  storage::Database watched_;  // PRAGMA data_version counts the commits of others than its own connection
  std::int64_t seen_ = watched_.data_version();
  storage::ReadPool quick_, slow_;  // the last member: their threads use the others
};

}  // namespace abl::web
