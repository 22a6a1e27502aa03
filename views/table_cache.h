// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "storage/database.h"
#include "views/packed_table.h"

namespace abl::views {

/// Tables as they were computed last. A table is computed as a whole, for its units, notes and the best of
/// its columns: who reads it page by page, and the many who watch one sweep, have it computed once for each
/// state of the store. Thread: any.
class TableCache {
 public:
  static constexpr std::size_t kMostBytes = 64 << 20;

  /// Has a read-only connection of its own, which sees whether something was committed.
  explicit TableCache(const std::filesystem::path& store, std::size_t most_bytes = kMostBytes)
      : watched_{store, storage::Database::Mode::kReadOnly}, most_bytes_{most_bytes} {}

  /// The table as it is now, or was at a moment since the call; computed with `db`, which is in no
  /// transaction, for it would read an older state. Waits for another thread that computes the same one.
  /// Throws: as views::table.
  std::shared_ptr<const PackedTable> table(storage::Database& db, const std::string& sweep);

 private:
  struct Kept {
    std::string sweep;
    std::int64_t version = 0;  ///< of the store: nothing older is in the table
    std::shared_ptr<const PackedTable> table;
  };
  std::shared_ptr<const PackedTable> find(const std::string& sweep, std::int64_t version);
  void keep(Kept table);

  std::mutex mutex_;
  std::condition_variable computed_;
  storage::Database watched_;
  const std::size_t most_bytes_;
  std::list<Kept> kept_;  // what was read last first
  std::size_t bytes_ = 0;
  std::set<std::string> under_way_;
};

}  // namespace abl::views
