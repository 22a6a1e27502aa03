// SPDX-License-Identifier: Apache-2.0
#include "storage/trial_store.h"

// Runs and their checkpoints, as they are stored.
namespace abl::storage {
namespace {

template <class T>
std::optional<T> optional(const Statement& row, int column) {
  return row.is_null(column) ? std::nullopt : std::optional{static_cast<T>(row.integer(column))};
}

RunRecord read_run(const Statement& row) {
  return RunRecord{.id = static_cast<RunId>(row.integer(0)),
                   .trial = static_cast<TrialId>(row.integer(1)),
                   .attempt = static_cast<int>(row.integer(2)),
                   .state = run_state(row.text(3)),
                   .worker = row.text(4),
                   .host = row.text(5),
                   .directory = row.text(6),
                   .reason = row.text(7),
                   .environment_json = row.text(8),
                   .stop_reason = row.text(22),
                   .token = row.text(23),
                   .silent = row.integer(24) != 0,
                   .alone = row.integer(25) != 0,
                   .leased = row.time(9),
                   .started = row.is_null(10) ? std::nullopt : std::optional{row.time(10)},
                   .ended = row.is_null(11) ? std::nullopt : std::optional{row.time(11)},
                   .lease_expires = row.time(12),
                   .step = static_cast<std::uint32_t>(row.integer(13)),
                   .total_steps = static_cast<std::uint32_t>(row.integer(14)),
                   .steps_per_second = row.real(15),
                   .resumed_from_step = optional<std::uint32_t>(row, 16),
                   .bit_exact = row.integer(17) != 0,
                   .exit_code = optional<int>(row, 18),
                   .signal = optional<int>(row, 19),
                   .failure = value_named<protocol::FailureClass>(row.text(30)),
                   .failure_rule = row.text(31),
                   .last_seq = static_cast<std::uint64_t>(row.integer(20)),
                   .log_bytes = static_cast<std::uint64_t>(row.integer(21)),
                   .refused_lines = static_cast<std::uint32_t>(row.integer(26)),
                   .refused_example = row.text(27),
                   .repeated_points = static_cast<std::uint32_t>(row.integer(28)),
                   .packed_with = static_cast<std::uint32_t>(row.integer(29)),
                   .took = row.is_null(32) ? std::nullopt : std::optional{Milliseconds{row.integer(32)}}};
}

Statement& select_runs(Database& db, const char* sql, const WhichRuns& which) {
  return db.prepared(sql)
      .bind(":sweep", which.sweep)
      .bind(":trial", which.trial)
      .bind(":before", which.before);
}

}  // namespace

RunRecord TrialStore::run(RunId run) const {
  auto found = db_.prepared(R"sql(
      SELECT id, trial_id, attempt, state, worker, host, directory, reason, environment_json, leased_ms, started_ms, ended_ms,
             lease_expires_ms, step, total_steps, steps_per_second, resumed_from_step, bit_exact, exit_code, signal, last_seq, log_bytes, stop_reason,
             token, silent, alone, refused_lines, refused_example, repeated_points, packed_with, failure, failure_rule, took_ms
      FROM run WHERE id = :run)sql")
                   .bind(":run", run)
                   .one(read_run);
  if (found) return *found;
  const auto newest = db_.prepared("SELECT MAX(id) FROM run")
                          .one([](const Statement& row) { return row.integer(0); })
                          .value_or(0);
  throw Error{Code::kNotFound,
              "unknown run " + std::to_string(run) +
                  (newest == 0 ? "; nothing has run yet" : "; the newest is " + std::to_string(newest))};
}

std::vector<RunRecord> TrialStore::runs_of(TrialId trial) const {
  const Transaction snapshot{db_, Transaction::kRead};
  const auto ids = db_.prepared("SELECT id FROM run WHERE trial_id = :trial ORDER BY attempt")
                       .bind(":trial", trial)
                       .all([](const Statement& row) { return static_cast<RunId>(row.integer(0)); });
  std::vector<RunRecord> runs;
  for (const RunId id : ids) runs.push_back(run(id));
  return runs;
}

std::vector<RunRecord> TrialStore::list_runs(const WhichRuns& which, int limit) const {
  const Transaction snapshot{db_, Transaction::kRead};
  const auto ids = select_runs(db_, R"sql(
      SELECT id FROM run
      WHERE (:trial IS NULL OR trial_id = :trial)
        AND (:sweep IS NULL OR trial_id IN (SELECT trial_id FROM sweep_trial WHERE sweep_id = :sweep))
        AND (:before = 0 OR id < :before)
      ORDER BY id DESC LIMIT :limit)sql",
                               which)
                       .bind(":limit", limit)
                       .all([](const Statement& row) { return static_cast<RunId>(row.integer(0)); });
  std::vector<RunRecord> runs;
  for (const RunId id : ids) runs.push_back(run(id));
  return runs;
}

std::uint32_t TrialStore::count_runs(const WhichRuns& which) const {
  return select_runs(db_, R"sql(
      SELECT COUNT(*) FROM run
      WHERE (:trial IS NULL OR trial_id = :trial)
        AND (:sweep IS NULL OR trial_id IN (SELECT trial_id FROM sweep_trial WHERE sweep_id = :sweep))
        AND (:before = 0 OR id < :before))sql",
                     which)
      .one([](const Statement& row) { return static_cast<std::uint32_t>(row.integer(0)); })
      .value();
}

void TrialStore::add_checkpoint(const CheckpointRecord& checkpoint) {
  db_.prepared(
         "INSERT OR REPLACE INTO checkpoint (run_id, step, host, path, sha256, best) VALUES (:run, :step, "
         ":host, "
         ":path, :sha256, :best)")
      .bind(":run", checkpoint.run)
      .bind(":step", checkpoint.step)
      .bind(":host", checkpoint.host)
      .bind(":path", checkpoint.path)
      .bind(":sha256", checkpoint.sha256)
      .bind(":best", checkpoint.best)
      .run();
  // but for the best one: others may take its weights
  db_.prepared(R"sql(DELETE FROM checkpoint WHERE run_id = :run AND step <
                     (SELECT step FROM checkpoint WHERE run_id = :run ORDER BY step DESC LIMIT 1 OFFSET :most - 1)
                     AND (best = '' OR step < (SELECT MAX(step) FROM checkpoint WHERE run_id = :run AND best <> '')))sql")
      .bind(":run", checkpoint.run)
      .bind(":most", static_cast<std::int64_t>(kMostCheckpoints))
      .run();
}

/// Whether a run of `other` may be what a run of `trial` goes on with.
bool TrialStore::is_of(TrialId trial, TrialId other) const {
  return trial == other || db_.prepared("SELECT 1 FROM trial WHERE id = :trial AND continues = :other")
                               .bind(":trial", trial)
                               .bind(":other", other)
                               .one([](const Statement&) { return true; })
                               .has_value();
}

std::vector<CheckpointRecord> TrialStore::checkpoints_of(TrialId trial) const {
  return db_
      .prepared(
          R"sql(SELECT c.run_id, c.step, c.host, c.path, c.sha256, c.best FROM checkpoint c JOIN run ON run.id = c.run_id
                      WHERE run.trial_id IN (:trial, (SELECT continues FROM trial WHERE id = :trial))
                      ORDER BY run.trial_id = :trial DESC, run.attempt DESC, c.step DESC)sql")
      .bind(":trial", trial)
      .all([](const Statement& row) {
        return CheckpointRecord{.run = static_cast<RunId>(row.integer(0)),
                                .step = static_cast<std::uint32_t>(row.integer(1)),
                                .host = row.text(2),
                                .path = row.text(3),
                                .sha256 = row.text(4),
                                .best = row.text(5)};
      });
}

}  // namespace abl::storage
