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

#include "storage/change_log.h"
#include "storage/database.h"
#include "storage/table.h"
#include "views/packed_table.h"
#include "views/picked_pivot.h"
#include "views/row_means.h"

namespace abl::views {

/// Tables as they were computed last. A table is computed as a whole, for its units, notes and the best of
/// its columns: who reads it page by page, and the many who watch one sweep, have it computed once for each
/// state of the store. Where somebody says what commits touch (`follow`), a table of which nothing was
/// touched stays, and of others the rows that were are read anew. Thread: any.
class TableCache {
 public:
  static constexpr std::size_t kMostBytes = 64 << 20;

  /// Has a read-only connection of its own, which sees whether something was committed.
  explicit TableCache(const std::filesystem::path& store, std::size_t most_bytes = kMostBytes)
      : watched_{store, storage::Database::Mode::kReadOnly}, most_bytes_{most_bytes} {}

  /// `log` has what every commit from now on touches; what tables are made of is kept beside them, in as many
  /// bytes more. To be called before the first table is asked for.
  void follow(const storage::ChangeLog& log) {
    log_ = &log;
    most_bytes_ *= 2;
    means_.follow(log);
  }
  RowMeans& means() { return means_; }

  /// The table as it is now, or was at a moment since the call; computed with `db`, which is in no
  /// transaction, for it would read an older state. Waits for another thread that computes the same one.
  /// Throws: as views::table.
  /// `long_form`: without the pivot that its file asks for.
  std::shared_ptr<const PackedTable> table(storage::Database& db, const std::string& sweep,
                                           bool long_form = false);
  /// The same, pivoted by factors that a reader picked (picked_pivot.h). Throws: as PickedPivots::table.
  std::shared_ptr<const PackedTable> pivoted(storage::Database& db, const std::string& sweep,
                                             const std::vector<std::string>& factors);

 private:
  struct Kept {
    std::string sweep;
    std::int64_t version = 0;  ///< of the store: nothing older is in the table
    std::shared_ptr<const PackedTable> table;
    std::shared_ptr<const PackedTable> pivoted;  ///< null where the file asks for none
    const std::shared_ptr<const PackedTable>& form(bool long_form) const {
      return long_form || !pivoted ? table : pivoted;
    }
    void pack(ablate::v1::Table&& message, storage::Table noted, const std::shared_ptr<StatisticsMemo>& memo);
    std::uint64_t number = 0;                  ///< of the log: the same
    std::shared_ptr<storage::KeptTable> rows;  ///< to be brought up to date, where there is a log
    std::size_t bytes = 0;
  };
  std::list<Kept>::iterator find(const std::string& sweep);
  bool is_new(const Kept& kept, std::int64_t asked) const;
  void keep(Kept table);
  void forget(const std::string& sweep);
  Kept compute(storage::Database& db, const std::string& sweep, Kept next) const;

  std::mutex mutex_;
  std::condition_variable computed_;
  storage::Database watched_;
  std::size_t most_bytes_;
  const storage::ChangeLog* log_ = nullptr;
  std::list<Kept> kept_;  // what was read last first
  std::size_t bytes_ = 0;
  std::set<std::string> under_way_;
  RowMeans means_;
  PickedPivots picked_;
  const std::shared_ptr<StatisticsMemo> memo_ = std::make_shared<StatisticsMemo>();  // of all tables
};

/// How a cell of a sweep's table came about, at the cost of its row where the table is kept.
/// Throws: as why of views.h.
ablate::v1::WhyResponse why(storage::Database& db, TableCache& tables, const ablate::v1::WhyRequest& request);

}  // namespace abl::views
