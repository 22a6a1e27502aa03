// SPDX-License-Identifier: Apache-2.0
#include "storage/trial_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "storage/measured_store.h"
#include "storage/metric_store.h"
#include "storage/unfilled.h"
#include "storage/weights_store.h"

// The reading half of TrialStore: runs and their checkpoints.
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
                   .packed_with = static_cast<std::uint32_t>(row.integer(29))};
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
             token, silent, alone, refused_lines, refused_example, repeated_points, packed_with, failure, failure_rule
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

namespace {

/// Before a failed trial runs again: 1 s after the first failure, then twice as long each time.
Milliseconds back_off(int failures) {
  return std::chrono::seconds{std::min(60, 1 << std::clamp(failures - 1, 0, 6))};
}

/// Before a trial runs again that was lost more than once: 1 s, then twice as long each time.
Milliseconds loss_back_off(int losses) {
  return std::min<Milliseconds>(std::chrono::seconds{1 << std::clamp(losses - 2, 0, 10)},
                                TrialStore::kLongestBackOff);
}

/// What it waits for; the moment from which it counts is in the run that ended.
std::string back_off_reason(Milliseconds wait, const std::string& after) {
  return fmt::format("runs again {} s after {}",
                     std::chrono::duration_cast<std::chrono::seconds>(wait).count(), after);
}

/// 16 hexadecimal digits.
std::string random_token() {
  thread_local std::random_device source;
  return fmt::format("{:08x}{:08x}", source(), source());
}

std::string held_reason(int attempts, bool worker_trouble, const std::string& last) {
  return "held: " + std::to_string(attempts) + " attempts in a row " +
         (worker_trouble ? "left their worker unhealthy (does the trial fill its disk?)"
                         : "ended when their worker died running only this trial (out of memory?)") +
         "; release it with 'ablate retry <sweep> --held'. Last: " + last;
}

Error not_under_way(RunId run) {
  return Error{Code::kFailedPrecondition,
               "run " + std::to_string(run) +
                   " is no longer running here: its lease expired or moved to another attempt"};
}

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

std::optional<Lease> TrialStore::lease(TrialId trial, const std::string& worker, const std::string& host,
                                       Time now, Time expires, const std::vector<std::uint32_t>& slots) {
  Lease lease{.trial = trial, .expires = expires, .token = random_token()};
  db_.prepared(R"sql(
      INSERT INTO run (id, trial_id, attempt, state, worker, host, leased_ms, lease_expires_ms, slots, token)
      SELECT (SELECT last_run + 1 FROM store WHERE last_run >= COALESCE((SELECT MAX(id) FROM run), 0)),
             id, attempt + 1, 'leased', :worker, :host, :now, :expires, :slots, :token FROM trial
      WHERE id = :trial AND state = 'queued'
        AND EXISTS (SELECT 1 FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id
                    WHERE st.trial_id = :trial AND st.withdrawn = 0 AND s.state = 'active' AND s.spent = ''))sql")
      .bind(":trial", trial)
      .bind(":worker", worker)
      .bind(":host", host)
      .bind(":now", now)
      .bind(":expires", expires)
      .bind(":slots", fmt::format("[{}]", fmt::join(slots, ",")))
      .bind(":token", lease.token)
      .run();
  if (db_.changes() == 0) return std::nullopt;
  lease.run = static_cast<RunId>(db_.last_insert_id());
  lease.attempt = db_.prepared("SELECT attempt FROM run WHERE id = :run")
                      .bind(":run", lease.run)
                      .one([](const Statement& row) { return static_cast<int>(row.integer(0)); })
                      .value();
  db_.prepared(
         "UPDATE trial SET state = 'leased', attempt = :attempt, waiting = '', run_id = :run WHERE id = "
         ":trial")
      .bind(":attempt", lease.attempt)
      .bind(":run", lease.run)
      .bind(":trial", trial)
      .run();
  return lease;
}

bool TrialStore::renew(RunId run, Time expires) {
  db_.prepared(
         "UPDATE run SET lease_expires_ms = :expires WHERE id = :run AND state IN ('leased', 'running')")
      .bind(":expires", expires)
      .bind(":run", run)
      .run();
  return db_.changes() > 0;
}

void TrialStore::renew_all(Time expires) {
  db_.prepared("UPDATE run SET lease_expires_ms = :expires WHERE state IN ('leased', 'running')")
      .bind(":expires", expires)
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

std::vector<RunId> TrialStore::expired(Time now) const {
  // twice a second: by the index of the few that are under way, never by looking at every run there was
  auto runs = db_.prepared(R"sql(SELECT id FROM run INDEXED BY run_under_way
                                 WHERE state IN ('leased', 'running') AND lease_expires_ms <= :now)sql")
                  .bind(":now", now)
                  .all([](const Statement& row) { return static_cast<RunId>(row.integer(0)); });
  std::ranges::sort(runs);
  return runs;
}

void TrialStore::ask_to_stop(const std::vector<RunId>& runs, const std::string& reason) {
  for (const RunId run : runs)
    db_.prepared("UPDATE run SET stop_reason = :reason WHERE id = :run AND state IN ('leased', 'running')")
        .bind(":reason", reason)
        .bind(":run", run)
        .run();
}

void TrialStore::note_packed(const std::vector<RunId>& runs, std::uint32_t others) {
  for (const RunId run : runs)
    db_.prepared("UPDATE run SET packed_with = MAX(packed_with, :others) WHERE id = :run")
        .bind(":others", others)
        .bind(":run", run)
        .run();
}

void TrialStore::take_stops_back(SweepId sweep) {
  db_.prepared(
         R"sql(UPDATE run SET stop_reason = '' WHERE state IN ('leased', 'running') AND stop_reason <> ''
                     AND trial_id IN (SELECT trial_id FROM sweep_trial WHERE sweep_id = :sweep AND withdrawn = 0))sql")
      .bind(":sweep", sweep)
      .run();
}

bool TrialStore::under_way(RunId run) const {
  return db_
      .prepared(R"sql(SELECT 1 FROM run JOIN trial t ON t.id = run.trial_id AND t.run_id = run.id
                            WHERE run.id = :run AND run.state IN ('leased', 'running'))sql")
      .bind(":run", run)
      .one([](const Statement&) { return true; })
      .has_value();
}

std::uint32_t TrialStore::count_under_way() const {
  return static_cast<std::uint32_t>(
      db_.prepared("SELECT COUNT(*) FROM trial WHERE state IN ('leased', 'running')")
          .one([](const Statement& row) { return row.integer(0); })
          .value());
}

std::vector<RunId> TrialStore::under_way_on(const std::string& worker) const {
  return db_
      .prepared("SELECT id FROM run WHERE state IN ('leased', 'running') AND worker = :worker ORDER BY id")
      .bind(":worker", worker)
      .all([](const Statement& row) { return static_cast<RunId>(row.integer(0)); });
}

std::vector<RunUnderWay> TrialStore::runs_under_way_on(const std::string& worker) const {
  return db_
      .prepared(R"sql(
      SELECT run.id, run.slots, t.command_json <> '', run.stop_reason <> '',
             COALESCE((SELECT MAX(s.priority) FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id
                       WHERE st.trial_id = t.id AND st.withdrawn = 0), 0)
      FROM run JOIN trial t ON t.id = run.trial_id
      WHERE run.state IN ('leased', 'running') AND run.worker = :worker ORDER BY run.id)sql")
      .bind(":worker", worker)
      .all([](const Statement& row) {
        return RunUnderWay{.id = static_cast<RunId>(row.integer(0)),
                           .slots = nlohmann::json::parse(row.text(1)).get<std::vector<std::uint32_t>>(),
                           .priority = static_cast<int>(row.integer(4)),
                           .command = row.integer(2) != 0,
                           .asked_to_stop = row.integer(3) != 0};
      });
}

std::map<std::uint32_t, RunId> TrialStore::slots_in_use(const std::string& worker) const {
  const auto runs =
      db_.prepared(R"sql(SELECT slot.value, run.id FROM run, json_each(run.slots) slot
                         WHERE run.state IN ('leased', 'running') AND run.worker = :worker ORDER BY run.id)sql")
          .bind(":worker", worker)
          .all([](const Statement& row) {
            return std::pair{static_cast<std::uint32_t>(row.integer(0)), static_cast<RunId>(row.integer(1))};
          });
  return {runs.begin(), runs.end()};
}

void TrialStore::start(RunId run, const Started& started, Time now) {
  if (!under_way(run)) throw not_under_way(run);
  const RunRecord record = this->run(run);
  std::optional<RunRecord> before;  // that it continues
  if (started.resumed_from_run != 0 && started.resumed_from_step)
    if (before = this->run(started.resumed_from_run); !is_of(record.trial, before->trial))
      throw Error{Code::kFailedPrecondition, "run " + std::to_string(run) + " claims to resume run " +
                                                 std::to_string(started.resumed_from_run) +
                                                 ", which belongs to another trial"};
  pin(record, started.data_fingerprint);
  WeightsStore{db_}.pin(record, started.weights);
  db_.prepared(R"sql(
      UPDATE run SET state = 'running', started_ms = :now, total_steps = :total, directory = :directory, environment_json = :environment,
                     resumed_from_step = :step, resumed_from_run = :from,
                     bit_exact = :exact AND COALESCE((SELECT bit_exact FROM run WHERE id = :from), 1), step = MAX(step, COALESCE(:step, 0))
      WHERE id = :run)sql")
      .bind(":now", now)
      .bind(":total", started.total_steps)
      .bind(":directory", started.directory)
      .bind(":environment", started.environment_json)
      .bind(":step", started.resumed_from_step)
      .bind(":from", started.resumed_from_run == 0 ? std::nullopt : std::optional{started.resumed_from_run})
      .bind(":exact", started.bit_exact)
      .bind(":run", run)
      .run();
  db_.prepared("UPDATE trial SET state = 'running' WHERE id = :trial").bind(":trial", record.trial).run();
  if (!before) return;
  MetricStore{db_}.copy(before->id, run, *started.resumed_from_step);
  MetricStore{db_}.add_refused(run, before->refused_lines,
                               before->refused_example);  // what it lacks, this one lacks
  MetricStore{db_}.add_repeated(run, before->repeated_points);
}

std::string TrialStore::wrong_data(const RunRecord& run, const std::string& reported) const {
  const std::string data = get(run.trial).data;
  const auto pinned = data.empty() || reported.empty() ? std::nullopt : fingerprint(data);
  if (!pinned || *pinned == reported) return {};
  return "data '" + data + "' on worker '" + run.worker + "' has the fingerprint " + reported +
         ", this store's results are of " + *pinned +
         "; give the worker the same data, or the data another name";
}

void TrialStore::pin(const RunRecord& run, const std::string& reported) {
  const std::string data = get(run.trial).data;
  if (data.empty() || reported.empty()) return;
  if (const std::string wrong = wrong_data(run, reported); !wrong.empty())
    throw Error{Code::kFailedPrecondition, wrong};
  if (fingerprint(data)) return;
  db_.prepared("INSERT INTO data_pin (data, fingerprint, run_id) VALUES (:data, :fingerprint, :run)")
      .bind(":data", data)
      .bind(":fingerprint", reported)
      .bind(":run", run.id)
      .run();
  db_.prepared(
         "UPDATE trial SET data_fingerprint = :fingerprint WHERE data = :data AND data_fingerprint = ''")
      .bind(":fingerprint", reported)
      .bind(":data", data)
      .run();
}

void TrialStore::note_death(const std::vector<RunId>& runs) {
  // A run that was leased ahead waits behind another in its slot: it is neither the cause nor company.
  for (const RunId run : runs)
    db_.prepared(R"sql(
        UPDATE run SET alone = NOT EXISTS (
          SELECT 1 FROM run front, json_each(front.slots) slot, json_each(run.slots) mine
          WHERE front.worker = run.worker AND front.state IN ('leased', 'running') AND run.state = 'leased'
            AND front.id < run.id AND slot.value = mine.value
        ) AND NOT EXISTS (
          SELECT 1 FROM run other WHERE other.worker = run.worker AND other.id <> run.id AND (
            other.state IN ('leased', 'running') AND NOT EXISTS (
              SELECT 1 FROM run front, json_each(front.slots) slot, json_each(other.slots) mine
              WHERE front.worker = run.worker AND front.state IN ('leased', 'running') AND other.state = 'leased'
                AND front.id < other.id AND slot.value = mine.value)
            -- or lost with it, its lease being a little older
            OR other.state = 'lost' AND other.ended_ms > run.leased_ms AND other.ended_ms > COALESCE(
                 (SELECT last_heartbeat_ms FROM worker WHERE name = run.worker), 0)))
        WHERE id = :run)sql")
        .bind(":run", run)
        .run();
}

bool TrialStore::adopt(RunId id, Time expires) {
  Transaction transaction{db_, Transaction::kSavepoint};
  const RunRecord run = this->run(id);
  if (run.state != RunState::kLost || !run.silent) return false;
  const TrialRecord trial = get(run.trial);
  // that it lives is no loss and no death
  db_.prepared("UPDATE run SET silent = 0, alone = 0 WHERE id = :run").bind(":run", id).run();
  db_.prepared(
         "UPDATE trial SET losses = MAX(losses - 1, 0), deaths = MAX(deaths - :alone, 0) WHERE id = :trial")
      .bind(":alone", run.alone)
      .bind(":trial", trial.id)
      .run();
  const bool free =
      trial.run == id && (trial.state == TrialState::kQueued || trial.state == TrialState::kHeld);
  if (free) {
    if (run.ended) add_gpu_time(trial, run.leased - *run.ended);  // until its end, that is counted again
    const RunState state = run.started ? RunState::kRunning : RunState::kLeased;
    db_.prepared(
           R"sql(UPDATE run SET state = :state, reason = '', failure = '', ended_ms = NULL, lease_expires_ms = :expires
                       WHERE id = :run)sql")
        .bind(":state", to_text(state))
        .bind(":expires", expires)
        .bind(":run", id)
        .run();
    db_.prepared(
           R"sql(UPDATE trial SET state = :state, reason = '', waiting = '', not_before_ms = 0, finished_ms = NULL
                       WHERE id = :trial)sql")
        .bind(":state", to_text(run.started ? TrialState::kRunning : TrialState::kLeased))
        .bind(":trial", trial.id)
        .run();
  }
  transaction.commit();
  return free;
}

/// Of a run that has ended, to what the sweeps that want its trial took; a negative time takes it back.
void TrialStore::add_gpu_time(const TrialRecord& trial, Milliseconds time) {
  db_.prepared(R"sql(UPDATE sweep_count SET gpu_ms = MAX(0, gpu_ms + :took)
                     WHERE sweep_id IN (SELECT sweep_id FROM sweep_trial WHERE trial_id = :trial AND NOT withdrawn))sql")
      .bind(":took", std::int64_t{time.count()} * std::max(1, trial.gpus))
      .bind(":trial", trial.id)
      .run();
}

/// Whether it came further than every run of its trial before it.
bool TrialStore::came_further(const RunRecord& run) const {
  return db_.prepared("SELECT COALESCE(MAX(step), 0) FROM run WHERE trial_id = :trial AND id < :run")
             .bind(":trial", run.trial)
             .bind(":run", run.id)
             .one([](const Statement& row) { return row.integer(0); })
             .value_or(0) < run.step;
}

namespace {

/// What becomes of a trial whose run has failed, or was lost, by its rules: its counts of failures are kept
/// here.
class Policy {
 public:
  Policy(TrialRecord& trial, const TrialStore::Ended& ended) : trial_{trial}, ended_{ended} {
    if (ended.state == RunState::kLost) verdict_.of = protocol::FailureClass::kInfrastructure;
    if (ended.state == RunState::kFailed)
      verdict_ = protocol::judge(rules_, {.of = ended.failure,
                                          .exit_code = ended.exit_code,
                                          .signal = ended.signal,
                                          .log_patterns = ended.log_patterns});
  }

  protocol::FailureClass of() const { return verdict_.of; }
  const std::string& rule() const { return verdict_.decided_by; }
  bool infrastructure() const { return verdict_.of == protocol::FailureClass::kInfrastructure; }

  /// Counts the failure. Returns: whether it leaves another attempt.
  bool count() {
    if (!verdict_.rule) return ++trial_.failures <= trial_.max_retries && ended_.retryable;
    const protocol::RetryRule& rule = rules_[*verdict_.rule];
    nlohmann::json counts = nlohmann::json::parse(trial_.retried, nullptr, /*allow_exceptions=*/false);
    if (!counts.is_object()) counts = nlohmann::json::object();
    const int failures = counts.value(rule.kind.text(), 0) + 1;
    counts[rule.kind.text()] = failures;
    trial_.retried = counts.dump();
    // who names this very failure knows better than the worker that it may pass
    return failures <= rule.attempts && (ended_.retryable || verdict_.specific);
  }

  /// Failures so far, whatever counts them.
  static int failures(const TrialRecord& trial) {
    int all = trial.failures;
    const auto counts = nlohmann::json::parse(trial.retried, nullptr, /*allow_exceptions=*/false);
    if (counts.is_object())
      for (const auto& count : counts) all += count.get<int>();
    return all;
  }

 private:
  TrialRecord& trial_;
  const TrialStore::Ended& ended_;
  const protocol::RetryRules rules_ = protocol::retry_rules(trial_.retry_on);
  protocol::Verdict verdict_;
};

/// "it failed (resources)": what a trial backs off from.
std::string after_failure(protocol::FailureClass of) {
  return of == protocol::FailureClass::kTrial ? "it failed" : fmt::format("it failed ({})", name_of(of));
}

}  // namespace

TrialState TrialStore::end(RunId id, const Ended& ended, Moment now) {
  if (!under_way(id)) throw not_under_way(id);
  const RunRecord run = this->run(id);
  TrialRecord trial = get(run.trial);
  Policy policy{trial, ended};
  const bool lost =
      ended.state == RunState::kLost || (ended.state == RunState::kFailed && policy.infrastructure());
  const bool failed = ended.state == RunState::kFailed && !lost;
  db_.prepared(
         R"sql(UPDATE run SET state = :state, reason = :reason, exit_code = :exit_code, signal = :signal, ended_ms = :now,
                              silent = :silent, took_ms = :took, failure = :failure, failure_rule = :rule WHERE id = :run)sql")
      .bind(":state", to_text(lost ? RunState::kLost : ended.state))
      .bind(":failure", lost || failed ? name_of(policy.of()) : "")
      .bind(":rule", policy.rule())
      .bind(":reason", ended.reason)
      .bind(":exit_code", ended.exit_code)
      .bind(":signal", ended.signal)
      .bind(":now", now.wall)
      .bind(":silent", lost && ended.silent)
      .bind(":took", ended.took ? std::optional{ended.took->count()} : std::nullopt)
      .bind(":run", id)
      .run();
  const bool another_attempt = failed && policy.count();
  if (lost ? came_further(run) : run.started.has_value()) trial.losses = trial.deaths = 0;
  const bool may_be_cause = lost && (run.alone || ended.worker_trouble);
  if (lost) ++trial.losses, trial.deaths += may_be_cause ? 1 : 0;
  trial.state = TrialState::kQueued;
  trial.reason.clear();
  trial.not_before = {};
  if (ended.state == RunState::kCompleted)
    trial.state = TrialState::kCompleted;
  else if (failed && !another_attempt)
    trial.state = TrialState::kFailed;
  else if (!claimed(trial.id))
    trial.state = TrialState::kCancelled;
  else if (may_be_cause && trial.deaths >= kDeathsInARow)
    trial.state = TrialState::kHeld;
  if (failed) trial.reason = ended.reason;
  if (trial.state == TrialState::kHeld)
    trial.reason = held_reason(trial.deaths, ended.worker_trouble, ended.reason);
  std::string waiting;
  if (trial.state == TrialState::kQueued) {
    const Milliseconds wait = failed                     ? back_off(Policy::failures(trial))
                              : lost && trial.losses > 1 ? loss_back_off(trial.losses)
                                                         : Milliseconds{};
    if (wait > Milliseconds{}) {
      trial.not_before = now.steady + wait;
      waiting = back_off_reason(wait, failed ? after_failure(policy.of()) : "its run was lost");
    }
  }
  // as its worker has measured: a run that was leased ahead waits behind others first. Of a GPU that runs
  // share each takes its part.
  const Milliseconds took = ended.took.value_or(std::max(Milliseconds{}, now.wall - run.leased));
  add_gpu_time(trial, Milliseconds{std::llround(static_cast<double>(took.count()) / (1 + ended.beside))});
  const bool over = trial.state != TrialState::kQueued;
  db_.prepared(
         R"sql(UPDATE trial SET state = :state, failures = :failures, retried = :retried, losses = :losses, deaths = :deaths, reason = :reason,
                                waiting = :waiting, not_before_ms = :not_before, finished_ms = :finished WHERE id = :trial)sql")
      .bind(":state", to_text(trial.state))
      .bind(":failures", trial.failures)
      .bind(":retried", trial.retried)
      .bind(":losses", trial.losses)
      .bind(":deaths", trial.deaths)
      .bind(":reason", trial.reason)
      .bind(":waiting", waiting)
      .bind(":not_before", trial.not_before)
      .bind(":finished", over ? std::optional{now.wall} : std::nullopt)
      .bind(":trial", trial.id)
      .run();
  if (trial.state == TrialState::kCompleted) {
    note_unfilled(db_, trial.id);
    MeasuredStore{db_}.note(run, trial, {ended.took, ended.beside}, now.wall);
  }
  return trial.state;
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
