// SPDX-License-Identifier: Apache-2.0
#include "views/row_means.h"

#include <algorithm>
#include <limits>

namespace abl::views {
namespace {

using storage::Database;
using storage::Statement;

constexpr double kNoMean = std::numeric_limits<double>::quiet_NaN();

/// Reads the means of some rows into their places. They are those of tables: of completed trials, and none of
/// a row whose values are not all finite.
void read_means(Database& db, storage::SweepId sweep, int column, int first, int last,
                std::vector<double>& means) {
  for (int row = first; row <= last; ++row) means[static_cast<std::size_t>(row)] = kNoMean;
  auto& rows = db.prepared(R"sql(
      SELECT place, CASE WHEN COUNT(*) = COUNT(value) THEN AVG(value) END FROM (
        SELECT st.row AS place, CASE c.take WHEN 'best' THEN CASE c.better WHEN 'lower' THEN ms.min ELSE ms.max END
                  WHEN 'min' THEN ms.min WHEN 'max' THEN ms.max
                  WHEN 'mean' THEN ms.sum / ms.finite ELSE ms.last END AS value
        FROM sweep_column c JOIN metric m ON m.name = c.source
        CROSS JOIN sweep_trial st ON st.sweep_id = c.sweep_id AND st.row >= :first AND st.row <= :last
        CROSS JOIN trial t ON t.id = st.trial_id AND t.state = 'completed'
        CROSS JOIN metric_summary ms ON ms.run_id = t.run_id AND ms.metric_id = m.id
        WHERE c.sweep_id = :sweep AND c.position = :column) GROUP BY place)sql");
  rows.bind(":sweep", sweep).bind(":column", column).bind(":first", first).bind(":last", last);
  while (rows.step())
    if (!rows.is_null(1)) means[static_cast<std::size_t>(rows.integer(0))] = rows.real(1);
}

}  // namespace

RowMeans::Search::Search(RowMeans& means, Database& db) : means_{means}, lock_{means.mutex_} {
  means_.note_touched(db);
}

/// Before a snapshot begins, so that it has all that was touched up to here.
void RowMeans::note_touched(Database& db) {
  storage::ChangeLog::Since since;
  if (log_) since = log_->since(number_);
  number_ = since.number;
  if (!log_ || !since.complete) {
    kept_.clear();
    count_ = 0;
  }
  if (kept_.empty()) return;
  for (const storage::TrialId trial : since.touched.trials)
    for (const auto& [sweep, row] :
         db.prepared("SELECT DISTINCT sweep_id, row FROM sweep_trial WHERE trial_id = :trial")
             .bind(":trial", trial)
             .all([](const Statement& claim) {
               return std::pair{static_cast<storage::SweepId>(claim.integer(0)),
                                static_cast<int>(claim.integer(1))};
             })) {
      auto kept = kept_.lower_bound({sweep, std::numeric_limits<int>::min()});
      for (; kept != kept_.end() && kept->first.first == sweep; ++kept) kept->second.stale.insert(row);
    }
}

const std::vector<double>& RowMeans::Search::of(Database& db, const storage::SweepRecord& sweep, int column) {
  const auto rows = static_cast<int>(
      db.prepared("SELECT COALESCE(MAX(row) + 1, 0) FROM sweep_trial WHERE sweep_id = :sweep")
          .bind(":sweep", sweep.id)
          .one([](const Statement& row) { return row.integer(0); })
          .value_or(0));
  const std::pair key{sweep.id, column};
  auto kept = means_.kept_.find(key);
  if (kept == means_.kept_.end() && means_.count_ + static_cast<std::size_t>(rows) > means_.most_) {
    means_.kept_.clear();
    means_.count_ = 0;
  }
  if (kept == means_.kept_.end()) kept = means_.kept_.emplace(key, Kept{}).first;
  Kept& of = kept->second;
  const bool is_same = of.revision == sweep.revision && of.means.size() == static_cast<std::size_t>(rows);
  try {
    if (!is_same) {
      means_.count_ += static_cast<std::size_t>(rows) - of.means.size();
      of.means.assign(static_cast<std::size_t>(rows), kNoMean);
      if (rows > 0) read_means(db, sweep.id, column, 0, rows - 1, of.means);
    } else {
      for (const int row : of.stale)
        if (row < rows) read_means(db, sweep.id, column, row, row, of.means);
    }
  } catch (...) {  // half of it may be there
    means_.count_ -= of.means.size();
    means_.kept_.erase(kept);
    throw;
  }
  of.revision = sweep.revision;
  of.stale.clear();
  return of.means;
}

}  // namespace abl::views
