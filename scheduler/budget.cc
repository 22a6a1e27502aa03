// SPDX-License-Identifier: Apache-2.0
#include "scheduler/budget.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <vector>

#include "storage/sweep_store.h"

namespace abl::scheduler {
namespace {

using storage::Database;
using storage::Statement;
using storage::SweepId;

/// Of runs under way that the sweep, or its tuning, wants, what they took until now. By the runs, which are
/// few.
Milliseconds under_way(Database& db, SweepId sweep, Time now) {
  return Milliseconds{db.prepared(R"sql(
          SELECT COALESCE(SUM(MAX(0, :now - run.leased_ms) * MAX(1, COALESCE(NULLIF(json_array_length(run.slots), 0), t.gpus)
                   + COALESCE((SELECT SUM(json_array_length(p.slots)) FROM run_part p WHERE p.run_id = run.id), 0))), 0)
          FROM run INDEXED BY run_under_way CROSS JOIN trial t ON t.id = run.trial_id
          WHERE run.state IN ('leased', 'running')
            AND EXISTS (SELECT 1 FROM sweep_trial st WHERE st.trial_id = t.id AND st.withdrawn = 0 AND st.sweep_id IN (
              SELECT :sweep UNION ALL SELECT by_id FROM sweep_tuning WHERE sweep_id = :sweep
              UNION ALL SELECT sweep_id FROM sweep_tuning WHERE by_id = :sweep)))sql")
                          .bind(":sweep", sweep)
                          .bind(":now", now)
                          .one([](const Statement& row) { return row.integer(0); })
                          .value_or(0)};
}

struct Stored {
  SweepId id = 0;
  storage::Budget budget;
  Milliseconds used{};
  std::string spent;
};

Stored read(const Statement& row) {
  Stored stored{.id = static_cast<SweepId>(row.integer(0)),
                .used = Milliseconds{row.integer(3) + row.integer(5)},  // with that of its tuning
                .spent = row.text(4)};
  if (!row.is_null(1)) stored.budget.gpu_time = Milliseconds{row.integer(1)};
  if (!row.is_null(2)) stored.budget.until = row.time(2);
  return stored;
}

/// What is spent stays so until somebody gives more, whatever the clock shows then.
std::string refresh(Database& db, const Stored& stored, Time now) {
  const Milliseconds used =
      stored.used + (stored.budget.gpu_time ? under_way(db, stored.id, now) : Milliseconds{});
  std::string spent = why_spent(stored.budget, used, now);
  if (spent.empty() != stored.spent.empty())
    db.prepared("UPDATE sweep SET spent = :spent WHERE id = :sweep")
        .bind(":spent", spent)
        .bind(":sweep", stored.id)
        .run();
  return spent;
}

}  // namespace

std::string why_spent(const storage::Budget& budget, Milliseconds used, Time now) {
  if (budget.gpu_time && used >= *budget.gpu_time)
    return fmt::format("budget spent: its runs took the {:.4g} GPU hours that it may take",
                       static_cast<double>(budget.gpu_time->count()) / 3.6e6);
  if (budget.until && now >= *budget.until) {
    const std::time_t at = std::chrono::system_clock::to_time_t(*budget.until);
    std::tm local{};
    ::localtime_r(&at, &local);
    return fmt::format("budget spent: it was to run until {:%Y-%m-%d %H:%M}", local);
  }
  return {};
}

std::string refresh_budget(Database& db, SweepId sweep, Time now) {
  const auto stored =
      db.prepared(R"sql(SELECT s.id, s.gpu_ms_limit, s.until_ms, n.gpu_ms, s.spent, o.gpu_ms FROM sweep s
                        JOIN sweep_count n ON n.sweep_id = s.id LEFT JOIN sweep_tuning u ON u.sweep_id = s.id OR u.by_id = s.id
                        LEFT JOIN sweep_count o ON o.sweep_id = u.sweep_id + u.by_id - s.id WHERE s.id = :sweep)sql")
          .bind(":sweep", sweep)
          .one(read);
  return stored ? refresh(db, *stored, now) : std::string{};
}

void refresh_budgets_of(Database& db, storage::TrialId trial, Time now) {
  const auto sweeps = db.prepared(R"sql(
      SELECT DISTINCT s.id FROM sweep_trial st LEFT JOIN sweep_tuning u ON u.by_id = st.sweep_id OR u.sweep_id = st.sweep_id
      JOIN sweep s ON s.id IN (st.sweep_id, u.sweep_id, u.by_id)
      WHERE st.trial_id = :trial AND st.withdrawn = 0 AND (s.gpu_ms_limit IS NOT NULL OR s.until_ms IS NOT NULL))sql")
                          .bind(":trial", trial)
                          .all([](const Statement& row) { return static_cast<SweepId>(row.integer(0)); });
  for (const SweepId sweep : sweeps) refresh_budget(db, sweep, now);
}

bool refresh_budgets(Database& db, Time now) {
  const auto all =
      db.prepared(
            R"sql(SELECT s.id, s.gpu_ms_limit, s.until_ms, n.gpu_ms, s.spent, o.gpu_ms FROM sweep s INDEXED BY sweep_budget
                        JOIN sweep_count n ON n.sweep_id = s.id LEFT JOIN sweep_tuning u ON u.sweep_id = s.id OR u.by_id = s.id
                        LEFT JOIN sweep_count o ON o.sweep_id = u.sweep_id + u.by_id - s.id
                        WHERE (s.gpu_ms_limit IS NOT NULL OR s.until_ms IS NOT NULL) AND s.state = 'active' AND s.spent = ''
                          AND n.queued + COALESCE(o.queued, 0) > 0)sql")
          .all(read);
  bool changed = false;
  for (const Stored& stored : all) changed = !refresh(db, stored, now).empty() || changed;
  return changed;
}

}  // namespace abl::scheduler
