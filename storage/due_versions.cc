// SPDX-License-Identifier: Apache-2.0
#include "storage/due_versions.h"

#include <algorithm>

#include "storage/chain_store.h"
#include "storage/queue_store.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"

namespace abl::storage {

int DueVersions::known() const {
  return db_.prepared("SELECT due_as_of FROM store")
      .one([](const Statement& row) { return static_cast<int>(row.integer(0)); })
      .value_or(0);
}

void DueVersions::update(int newest, const std::function<int(const std::string& config)>& version_of) {
  if (known() == newest) return;
  Transaction transaction{db_, Transaction::kSavepoint};
  const auto trials =
      db_.prepared("SELECT id FROM trial WHERE command_json = ''").all([](const Statement& row) {
        return static_cast<TrialId>(row.integer(0));
      });
  for (const TrialId trial : trials)
    db_.prepared("UPDATE trial SET due_version = :due WHERE id = :trial AND due_version <> :due")
        .bind(":due", version_of(TrialStore{db_}.get(trial).config))
        .bind(":trial", trial)
        .run();
  // what takes the weights of a trial is corrected with it, however many lie in between
  db_.prepared(R"sql(
      UPDATE trial SET due_version = (SELECT MAX(s.due_version) FROM trial_source ts CROSS JOIN trial s ON s.id = ts.source_id
                                      WHERE ts.trial_id = trial.id)
      WHERE id IN (SELECT ts.trial_id FROM trial_source ts CROSS JOIN trial s ON s.id = ts.source_id CROSS JOIN trial t ON t.id = ts.trial_id
                   WHERE t.due_version < s.due_version))sql")
      .run();
  db_.prepared("UPDATE store SET due_as_of = :newest").bind(":newest", newest).run();
  transaction.commit();
}

bool DueVersions::renew_queued(const Renew& renewed) {
  const auto outdated =
      db_.prepared(
             "SELECT id FROM trial INDEXED BY trial_to_renew WHERE state = 'queued' AND "
             "result_version < due_version ORDER BY (SELECT COUNT(*) FROM trial_source WHERE "
             "trial_id = trial.id), id")
          .all([](const Statement& row) { return static_cast<TrialId>(row.integer(0)); });
  for (const TrialId id : outdated) {
    const TrialRecord trial = TrialStore{db_}.get(id);
    if (ChainStore{db_}.hold_outdated(id)) continue;
    RenewedTrial today = renewed(trial);
    today.result_version = std::max(today.result_version, ChainStore{db_}.version_of_sources(id));
    renew(trial, today);
  }
  return !outdated.empty();
}

void DueVersions::renew(const TrialRecord& trial, const RenewedTrial& today) {
  Transaction transaction{db_, Transaction::kSavepoint};
  if (const auto same = TrialStore{db_}.find_same(today.config_hash, today.result_version, trial.data)) {
    SweepStore{db_}.claim_instead({}, trial.id, same->id);
    db_.prepared(
           "UPDATE trial SET state = 'cancelled', reason = :reason, replaced_by = :same WHERE id = :trial")
        .bind(":same", same->id)
        .bind(":reason", "trial " + std::to_string(same->id) + " took its place: the trainer was corrected")
        .bind(":trial", trial.id)
        .run();
  } else {
    db_.prepared(
           "UPDATE trial SET config = :config, config_hash = :config_hash, result_version = :version, "
           "due_version = :version WHERE id = :trial")
        .bind(":config", today.config)
        .bind(":config_hash", today.config_hash)
        .bind(":version", today.result_version)
        .bind(":trial", trial.id)
        .run();
    QueueStore{db_}.set_shape(trial.id);
    // a run that is lost, but that its silent worker may still have, computes as the old version did
    db_.prepared("UPDATE run SET silent = 0 WHERE trial_id = :trial").bind(":trial", trial.id).run();
    db_.prepared("DELETE FROM checkpoint WHERE run_id IN (SELECT id FROM run WHERE trial_id = :trial)")
        .bind(":trial", trial.id)
        .run();
  }
  transaction.commit();
}

}  // namespace abl::storage
