// SPDX-License-Identifier: Apache-2.0
#include "storage/unfilled.h"

#include <nlohmann/json.hpp>

#include "protocol/metrics.h"

namespace abl::storage {
namespace {

/// What a trial of the trainer does not report by its nature; of a command anything may be its metric.
std::string never_reported(Database& db, TrialId trial) {
  const auto config = db.prepared("SELECT config FROM trial WHERE id = :trial")
                          .bind(":trial", trial)
                          .one([](const Statement& s) { return s.text(0); })
                          .value_or("");
  const auto document = nlohmann::json::parse(config, nullptr, /*allow_exceptions=*/false);
  nlohmann::json never = nlohmann::json::array();
  if (document.is_object() && document.contains("recipe"))
    never =
        protocol::never_reported(document.value(nlohmann::json::json_pointer{"/task/kind"}, std::string{}));
  return never.dump();
}

}  // namespace

void note_unfilled(Database& db, TrialId trial) {
  db.prepared(R"sql(
      UPDATE sweep_trial SET unfilled = (
        SELECT COUNT(*) FROM sweep_column c
        JOIN sweep_row r ON r.sweep_id = c.sweep_id AND r.position = sweep_trial.row AND r.other_sweep = ''
        WHERE c.sweep_id = sweep_trial.sweep_id AND c.kind = 'metric'
          AND c.source NOT GLOB 'probe:*' AND c.source NOT IN (SELECT value FROM json_each(:never))
          AND EXISTS (SELECT 1 FROM trial WHERE id = :trial AND state = 'completed')
          AND NOT EXISTS (SELECT 1 FROM metric m JOIN metric_summary ms ON ms.metric_id = m.id
                          WHERE m.name = c.source AND ms.run_id = (SELECT run_id FROM trial WHERE id = :trial)))
      WHERE trial_id = :trial)sql")
      .bind(":trial", trial)
      .bind(":never", never_reported(db, trial))
      .run();
}

}  // namespace abl::storage
