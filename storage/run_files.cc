// SPDX-License-Identifier: Apache-2.0
#include "storage/run_files.h"

namespace abl::storage {

void each_trial_with_files(Database& db, const std::function<void(TrialFiles)>& take) {
  const Transaction snapshot{db, Transaction::kRead};
  auto& rows = db.prepared(R"sql(
      SELECT t.id, t.state,
             EXISTS (SELECT 1 FROM sweep_trial WHERE trial_id = t.id)
               OR EXISTS (SELECT 1 FROM sweep_former WHERE trial_id = t.id)
               OR EXISTS (SELECT 1 FROM trial n WHERE n.id = t.replaced_by AND n.state NOT IN ('completed', 'failed')),
             run.id, run.attempt, run.state, run.host, run.directory, c.step, c.path,
             EXISTS (SELECT 1 FROM trial_source ts CROSS JOIN trial n ON n.id = ts.trial_id CROSS JOIN sweep_trial st ON st.trial_id = n.id
                     WHERE ts.source_id = t.id AND ts.name <> '' AND n.state <> 'completed')
      FROM run JOIN trial t ON t.id = run.trial_id LEFT JOIN checkpoint c ON c.run_id = run.id
      ORDER BY run.trial_id, run.attempt, c.step)sql");
  TrialFiles trial;
  while (rows.step()) {
    const auto id = static_cast<TrialId>(rows.integer(0));
    if (trial.id != id) {
      if (trial.id != 0) take(std::move(trial));
      trial = {.id = id,
               .state = trial_state(rows.text(1)),
               .shown = rows.integer(2) != 0,
               .needed = rows.integer(10) != 0};
    }
    const auto run = static_cast<RunId>(rows.integer(3));
    if (trial.runs.empty() || trial.runs.back().id != run)
      trial.runs.push_back({.id = run,
                            .attempt = static_cast<int>(rows.integer(4)),
                            .state = run_state(rows.text(5)),
                            .host = rows.text(6),
                            .directory = rows.text(7)});
    if (!rows.is_null(8))
      trial.runs.back().checkpoints.emplace_back(static_cast<std::uint32_t>(rows.integer(8)), rows.text(9));
  }
  if (trial.id != 0) take(std::move(trial));
}

}  // namespace abl::storage
