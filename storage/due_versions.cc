// SPDX-License-Identifier: Apache-2.0
#include "storage/due_versions.h"

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
  db_.prepared("UPDATE store SET due_as_of = :newest").bind(":newest", newest).run();
  transaction.commit();
}

void DueVersions::renew_queued() {
  const auto outdated =
      db_.prepared("SELECT id FROM trial WHERE state = 'queued' AND result_version < due_version ORDER BY id")
          .all([](const Statement& row) { return static_cast<TrialId>(row.integer(0)); });
  for (const TrialId trial : outdated) renew(trial);
}

void DueVersions::renew(TrialId id) {
  Transaction transaction{db_, Transaction::kSavepoint};
  const TrialRecord trial = TrialStore{db_}.get(id);
  if (const auto same =
          TrialStore{db_}.find_same(trial.identity.config_hash, trial.due_version, trial.data)) {
    SweepStore{db_}.claim_instead({}, id, same->id);
    db_.prepared("UPDATE trial SET state = 'cancelled', reason = :reason WHERE id = :trial")
        .bind(":reason", "trial " + std::to_string(same->id) + " took its place: the trainer was mended")
        .bind(":trial", id)
        .run();
  } else {
    db_.prepared("UPDATE trial SET result_version = due_version WHERE id = :trial").bind(":trial", id).run();
    // a run that is lost, but that its silent worker may still have, computes as the old version did
    db_.prepared("UPDATE run SET silent = 0 WHERE trial_id = :trial").bind(":trial", trial.id).run();
    db_.prepared("DELETE FROM checkpoint WHERE run_id IN (SELECT id FROM run WHERE trial_id = :trial)")
        .bind(":trial", id)
        .run();
  }
  transaction.commit();
}

}  // namespace abl::storage
