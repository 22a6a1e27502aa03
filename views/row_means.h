// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "storage/change_log.h"
#include "storage/database.h"
#include "storage/types.h"

namespace abl::views {

/// The means of the rows of sweeps in columns of metrics, as searches by value ask for them: one pass over
/// every trial of a sweep. Where somebody says what commits touch (`follow`), they are kept, and of a sweep
/// the rows that were touched are read anew. Thread: any; one search at a time.
class RowMeans {
 public:
  static constexpr std::size_t kMost = 1'000'000;  ///< rows of columns that are kept, 8 bytes each

  explicit RowMeans(std::size_t most = kMost) : most_{most} {}
  /// `log` has what every commit from now on touches.
  void follow(const storage::ChangeLog& log) { log_ = &log; }

  /// A search, from before its snapshot begins until it has its means.
  class Search {
   public:
    /// Of each row, in the table's order; NaN where it has none: no completed trial, or one whose value is
    /// not finite. Good until the next call. `column`: its place, of a metric. `db` is in the search's
    /// snapshot.
    const std::vector<double>& of(storage::Database& db, const storage::SweepRecord& sweep, int column);

   private:
    friend class RowMeans;
    Search(RowMeans& means, storage::Database& db);
    RowMeans& means_;
    std::unique_lock<std::mutex> lock_;
  };
  /// Waits for another search. `db` is in no transaction.
  Search begin(storage::Database& db) { return {*this, db}; }

 private:
  struct Kept {
    std::uint32_t revision = 0;  ///< of the sweep's content
    std::vector<double> means;
    std::set<int> stale;  ///< rows of which a trial was touched since
  };
  void note_touched(storage::Database& db);

  std::mutex mutex_;
  std::size_t most_, count_ = 0;
  const storage::ChangeLog* log_ = nullptr;
  std::uint64_t number_ = 0;                               // of the log, up to which `stale` is right
  std::map<std::pair<storage::SweepId, int>, Kept> kept_;  // of a sweep's columns
};

}  // namespace abl::views
