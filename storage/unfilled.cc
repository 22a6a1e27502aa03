// SPDX-License-Identifier: Apache-2.0
#include "storage/unfilled.h"

namespace abl::storage {

void note_unfilled(Database& db, TrialId trial) {
  db.prepared(R"sql(
      UPDATE sweep_trial SET unfilled = (
        SELECT COUNT(*) FROM sweep_column c
        JOIN sweep_row r ON r.sweep_id = c.sweep_id AND r.position = sweep_trial.row AND r.other_sweep = ''
        WHERE c.sweep_id = sweep_trial.sweep_id AND c.kind = 'metric'
          AND c.source NOT GLOB 'probe:*'
          AND EXISTS (SELECT 1 FROM trial WHERE id = :trial AND state = 'completed')
          AND NOT EXISTS (SELECT 1 FROM metric m JOIN metric_summary ms ON ms.metric_id = m.id
                          WHERE m.name = c.source AND ms.run_id = (SELECT run_id FROM trial WHERE id = :trial)))
      WHERE trial_id = :trial)sql")
      .bind(":trial", trial)
      .run();
}

}  // namespace abl::storage
