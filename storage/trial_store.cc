// SPDX-License-Identifier: Apache-2.0
#include "storage/trial_store.h"

// Trials as they are stored. Their runs: run_records.cc, leases.cc, run_life.cc.
namespace abl::storage {
namespace {

TrialRecord read_trial(const Statement& row) {
  return TrialRecord{
      .id = static_cast<TrialId>(row.integer(0)),
      .identity = {row.text(1), static_cast<int>(row.integer(2)), row.text(3)},
      .config = row.text(4),
      .data = row.text(5),
      .command_json = row.text(6),
      .gpus = static_cast<int>(row.integer(7)),
      .max_retries = static_cast<int>(row.integer(8)),
      .failures = static_cast<int>(row.integer(9)),
      .retry_on = row.text(23),
      .retried = row.text(24),
      .time_limit = std::chrono::seconds{row.integer(21)},
      .stall_limit = std::chrono::seconds{row.integer(22)},
      .log_limit = static_cast<std::uint64_t>(row.integer(25)),
      .nan_fails = row.integer(26) != 0,
      .pack = row.text(27),
      .losses = static_cast<int>(row.integer(16)),
      .deaths = static_cast<int>(row.integer(17)),
      .state = trial_state(row.text(10)),
      .reason = row.text(11),
      .seed = row.integer(12),
      .attempt = static_cast<int>(row.integer(13)),
      .run = row.is_null(14) ? std::nullopt : std::optional{static_cast<RunId>(row.integer(14))},
      .not_before = row.time(15),
      .reusable = row.integer(19) != 0,
      .replaced_by = row.is_null(20) ? std::nullopt : std::optional{static_cast<TrialId>(row.integer(20))},
      .due_version = static_cast<int>(row.integer(18))};
}

}  // namespace

TrialRecord TrialStore::get(TrialId trial) const {
  auto found = db_.prepared(R"sql(
      SELECT id, config_hash, result_version, data_fingerprint, config, data, command_json, gpus, max_retries, failures, state,
             CASE state WHEN 'queued' THEN (SELECT w.reason FROM trial_waiting w WHERE w.trial = trial.id) ELSE reason END, seed, attempt, run_id, not_before_ms, losses, deaths,
             due_version, reusable, replaced_by, time_limit_s, stall_limit_s, retry_on, retried, log_limit_bytes, nan_fails, pack
      FROM trial WHERE id = :trial)sql")
                   .bind(":trial", trial)
                   .one(read_trial);
  if (!found) throw Error{Code::kNotFound, "unknown trial " + std::to_string(trial)};
  return *found;
}

std::optional<TrialRecord> TrialStore::find_same(const std::string& config_hash, int result_version,
                                                 const std::string& data) const {
  const auto id = db_.prepared(R"sql(
      SELECT id FROM trial
      WHERE config_hash = :config_hash AND result_version = :result_version AND reusable = 1
        AND (data_fingerprint = '' OR data_fingerprint = (SELECT fingerprint FROM data_pin WHERE data = :data)))sql")
                      .bind(":config_hash", config_hash)
                      .bind(":result_version", result_version)
                      .bind(":data", data)
                      .one([](const Statement& row) { return static_cast<TrialId>(row.integer(0)); });
  return id ? std::optional{get(*id)} : std::nullopt;
}

std::optional<TrialRecord> TrialStore::find_before_mend(const std::string& config_hash,
                                                        int result_version) const {
  const auto id = db_.prepared(R"sql(
      SELECT id FROM trial
      WHERE config_hash = :config_hash AND result_version < :result_version AND reusable = 1 AND state = 'completed'
      ORDER BY result_version DESC)sql")
                      .bind(":config_hash", config_hash)
                      .bind(":result_version", result_version)
                      .one([](const Statement& row) { return static_cast<TrialId>(row.integer(0)); });
  return id ? std::optional{get(*id)} : std::nullopt;
}

void TrialStore::set_waiting(TrialId trial, const std::string& reason) {
  db_.prepared("UPDATE trial SET waiting = :reason WHERE id = :trial AND waiting <> :reason")
      .bind(":reason", reason)
      .bind(":trial", trial)
      .run();
}

void TrialStore::end_back_offs(Time now) {
  db_.prepared(
         R"sql(UPDATE trial SET waiting = '' WHERE (state = 'queued' OR state = 'leased' OR state = 'running') AND +state = 'queued'
                     AND waiting <> '' AND not_before_ms <= :now)sql")
      .bind(":now", now)
      .run();
}

void TrialStore::limit_back_offs(Time now) {
  db_.prepared(R"sql(
      UPDATE trial SET not_before_ms = longest.until FROM (
        SELECT id, :now + 1000 * MAX(MIN(60, 1 << MIN(MAX(failures, 1) - 1, 6)),
                                     CASE WHEN losses > 1 THEN MIN(:longest, 1 << MIN(losses - 2, 10)) ELSE 0 END) AS until
        FROM trial WHERE (state = 'queued' OR state = 'leased' OR state = 'running') AND +state = 'queued' AND not_before_ms > :now) longest
      WHERE trial.id = longest.id AND not_before_ms > longest.until)sql")
      .bind(":now", now)
      .bind(":longest", std::int64_t{std::chrono::seconds{kLongestBackOff}.count()})
      .run();
}

void TrialStore::forget_transitions(std::int64_t keep) {
  db_.prepared(R"sql(DELETE FROM transition WHERE id IN (
                       SELECT id FROM transition WHERE id <= (SELECT MAX(id) FROM transition) - :keep ORDER BY id LIMIT 10000))sql")
      .bind(":keep", keep)
      .run();
}

bool TrialStore::claimed(TrialId trial) const {
  return db_.prepared("SELECT 1 FROM sweep_trial WHERE trial_id = :trial AND withdrawn = 0")
      .bind(":trial", trial)
      .one([](const Statement&) { return true; })
      .has_value();
}

std::optional<std::string> TrialStore::fingerprint(const std::string& data) const {
  return db_.prepared("SELECT fingerprint FROM data_pin WHERE data = :data")
      .bind(":data", data)
      .one([](const Statement& row) { return row.text(0); });
}

}  // namespace abl::storage
