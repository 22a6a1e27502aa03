// SPDX-License-Identifier: Apache-2.0
#include "views/waiting.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "storage/sweep_store.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::Database;
using storage::Statement;

using ReasonCounts = std::map<std::string, double>;  // by reason

/// Of all trials of a sweep.
ReasonCounts reasons_of_all(Database& db, storage::SweepId sweep) {
  ReasonCounts counts;
  for (auto& reason : db.prepared(R"sql(
           SELECT w.reason FROM sweep_trial st CROSS JOIN trial t ON t.id = st.trial_id AND t.state = 'queued'
           CROSS JOIN trial_waiting w ON w.trial = t.id WHERE st.sweep_id = :sweep AND st.withdrawn = 0)sql")
                          .bind(":sweep", sweep)
                          .all([](const Statement& row) { return row.text(0); }))
    ++counts[reason];
  return counts;
}

/// Of some places of its table, a row's first seeds before others.
ReasonCounts reasons_of_some(Database& db, storage::SweepId sweep, std::uint32_t rows, std::uint32_t seeds,
                             std::uint32_t most) {
  ReasonCounts counts;
  const std::uint32_t some_rows = std::clamp(most / std::min(seeds, 4u), 1u, rows);
  const std::uint32_t some_seeds = std::clamp(most / some_rows, 1u, seeds);
  auto& place = db.prepared(R"sql(
      SELECT w.reason FROM sweep_trial st CROSS JOIN trial t ON t.id = st.trial_id AND t.state = 'queued'
      CROSS JOIN trial_waiting w ON w.trial = t.id
      WHERE st.sweep_id = :sweep AND st.row = :row AND st.seed_index = :seed AND st.withdrawn = 0)sql");
  for (std::uint32_t i = 0; i < some_rows; ++i)
    for (std::uint32_t j = 0; j < some_seeds; ++j)
      if (auto reason = place.bind(":sweep", sweep)
                            .bind(":row", static_cast<std::uint32_t>(std::uint64_t{i} * rows / some_rows))
                            .bind(":seed", static_cast<std::uint32_t>(std::uint64_t{j} * seeds / some_seeds))
                            .one([](const Statement& row) { return row.text(0); }))
        ++counts[*reason];
  return counts;
}

struct TableSize {
  std::uint32_t rows = 0, seeds = 0;
  std::uint64_t trials = 0;
};
TableSize size_of(Database& db, storage::SweepId sweep) {
  return db
      .prepared(R"sql(SELECT (SELECT MAX(position) + 1 FROM sweep_row WHERE sweep_id = :sweep),
                             (SELECT MAX(position) + 1 FROM sweep_seed WHERE sweep_id = :sweep),
                             queued + leased + running + completed + failed + held + cancelled
                      FROM sweep_count WHERE sweep_id = :sweep)sql")
      .bind(":sweep", sweep)
      .one([](const Statement& row) {
        return TableSize{static_cast<std::uint32_t>(row.integer(0)),
                         static_cast<std::uint32_t>(row.integer(1)),
                         static_cast<std::uint64_t>(row.integer(2))};
      })
      .value_or(TableSize{});
}

}  // namespace

std::uint32_t trials_looked_at(std::size_t sweeps) {
  constexpr std::size_t kAll = 1000, kLeast = 16, kMost = 256;
  return static_cast<std::uint32_t>(std::clamp(kAll / std::max<std::size_t>(1, sweeps), kLeast, kMost));
}

std::vector<v1::WaitingReason> waiting_reasons(Database& db, const storage::OpenStanding& sweep,
                                               std::uint32_t most) {
  std::vector<v1::WaitingReason> reasons;
  if (sweep.queued == 0) return reasons;
  const TableSize size = size_of(db, sweep.id);
  const bool is_whole = size.trials <= most;
  ReasonCounts counts;
  if (is_whole)
    counts = reasons_of_all(db, sweep.id);
  else if (size.rows > 0 && size.seeds > 0)
    counts = reasons_of_some(db, sweep.id, size.rows, size.seeds, most);
  if (counts.empty()) counts[""] = 1;  // the few that wait are among those that were not looked at
  double seen = 0;
  for (const auto& [reason, count] : counts) seen += count;
  for (const auto& [reason, count] : counts) {
    auto& message = reasons.emplace_back();
    message.set_sweep(sweep.name);
    message.set_reason(reason);
    message.set_trials(is_whole ? static_cast<std::uint32_t>(count)
                                : static_cast<std::uint32_t>(std::llround(count * sweep.queued / seen)));
    message.set_estimated(!is_whole && counts.size() > 1);
  }
  std::ranges::stable_sort(reasons, std::ranges::greater{}, &v1::WaitingReason::trials);
  return reasons;
}

}  // namespace abl::views
