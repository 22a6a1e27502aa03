// SPDX-License-Identifier: Apache-2.0
#include "storage/trial_store.h"

#include <algorithm>

#include "storage/metric_store.h"
#include "storage/weights_store.h"

namespace abl::storage {
namespace {

/// Before a failed trial runs again: 1 s after the first failure, then twice as long each time.
Milliseconds back_off(int failures) {
  return std::chrono::seconds{std::min(60, 1 << std::clamp(failures - 1, 0, 6))};
}

Error not_under_way(RunId run) {
  return Error{Code::kFailedPrecondition,
               "run " + std::to_string(run) +
                   " is not under way any more: its lease ended or went to another attempt"};
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
      .state = trial_state(row.text(10)),
      .reason = row.text(11),
      .seed = row.integer(12),
      .attempt = static_cast<int>(row.integer(13)),
      .run = row.is_null(14) ? std::nullopt : std::optional{static_cast<RunId>(row.integer(14))},
      .not_before = row.time(15)};
}

}  // namespace

TrialRecord TrialStore::get(TrialId trial) const {
  auto found = db_.prepared(R"sql(
      SELECT id, config_hash, result_version, data_fingerprint, config, data, command_json, gpus, max_retries, failures, state,
             CASE state WHEN 'queued' THEN waiting ELSE reason END, seed, attempt, run_id, not_before_ms
      FROM trial WHERE id = :trial)sql")
                   .bind(":trial", trial)
                   .one(read_trial);
  if (!found) throw Error{Code::kNotFound, "no trial has the id " + std::to_string(trial)};
  return *found;
}

std::optional<TrialRecord> TrialStore::find_same(const std::string& config_hash, int result_version,
                                                 const std::string& data) const {
  const auto id = db_.prepared(R"sql(
      SELECT id FROM trial
      WHERE config_hash = :config_hash AND result_version = :result_version AND reusable = 1
        AND data_fingerprint IN ('', (SELECT fingerprint FROM data_pin WHERE data = :data)))sql")
                      .bind(":config_hash", config_hash)
                      .bind(":result_version", result_version)
                      .bind(":data", data)
                      .one([](const Statement& row) { return static_cast<TrialId>(row.integer(0)); });
  return id ? std::optional{get(*id)} : std::nullopt;
}

std::vector<TrialRecord> TrialStore::queued(Time now, int limit) const {
  const Transaction snapshot{db_, Transaction::kRead};
  // A trial stands where its foremost claim stands: seed, then the sweep's age, then the row, as one number.
  const auto ids = db_.prepared(R"sql(
      SELECT t.id FROM trial t
      JOIN sweep_trial st ON st.trial_id = t.id AND st.withdrawn = 0
      JOIN sweep s ON s.id = st.sweep_id AND s.state = 'active'
      WHERE t.state = 'queued' AND t.not_before_ms <= :now
      GROUP BY t.id
      ORDER BY MAX(s.priority) DESC, MIN((st.seed_index << 44) + (s.id << 22) + st.row), t.id LIMIT :limit)sql")
                       .bind(":now", now)
                       .bind(":limit", limit)
                       .all([](const Statement& row) { return static_cast<TrialId>(row.integer(0)); });
  std::vector<TrialRecord> trials;
  for (const TrialId id : ids) trials.push_back(get(id));
  return trials;
}

std::vector<TrialStore::Waiting> TrialStore::waiting() const {
  return db_
      .prepared(R"sql(
      SELECT t.id, t.not_before_ms, t.gpus, t.data, t.command_json <> '',
             NOT EXISTS (SELECT 1 FROM sweep_trial st JOIN sweep s ON s.id = st.sweep_id
                         WHERE st.trial_id = t.id AND st.withdrawn = 0 AND s.state = 'active')
      FROM trial t WHERE t.state = 'queued' ORDER BY t.id)sql")
      .all([](const Statement& row) {
        return Waiting{.trial = static_cast<TrialId>(row.integer(0)),
                       .not_before = row.time(1),
                       .paused = row.integer(5) != 0,
                       .gpus = static_cast<int>(row.integer(2)),
                       .data = row.text(3),
                       .command = row.integer(4) != 0};
      });
}

void TrialStore::set_waiting(TrialId trial, const std::string& reason) {
  db_.prepared("UPDATE trial SET waiting = :reason WHERE id = :trial AND waiting <> :reason")
      .bind(":reason", reason)
      .bind(":trial", trial)
      .run();
}

std::optional<Lease> TrialStore::lease(TrialId trial, const std::string& worker, const std::string& host,
                                       Time now, Time expires) {
  Transaction transaction{db_, Transaction::kSavepoint};
  const auto attempt =
      db_.prepared(R"sql(UPDATE trial SET state = 'leased', attempt = attempt + 1, waiting = ''
                                          WHERE id = :trial AND state = 'queued' RETURNING attempt)sql")
          .bind(":trial", trial)
          .one([](const Statement& row) { return static_cast<int>(row.integer(0)); });
  if (!attempt) return std::nullopt;
  db_.prepared(R"sql(INSERT INTO run (trial_id, attempt, state, worker, host, leased_ms, lease_expires_ms)
                     VALUES (:trial, :attempt, 'leased', :worker, :host, :now, :expires))sql")
      .bind(":trial", trial)
      .bind(":attempt", *attempt)
      .bind(":worker", worker)
      .bind(":host", host)
      .bind(":now", now)
      .bind(":expires", expires)
      .run();
  const auto run = static_cast<RunId>(db_.last_insert_id());
  db_.prepared("UPDATE trial SET run_id = :run WHERE id = :trial")
      .bind(":run", run)
      .bind(":trial", trial)
      .run();
  transaction.commit();
  return Lease{.run = run, .trial = trial, .attempt = *attempt, .expires = expires};
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

std::vector<RunId> TrialStore::expired(Time now) const {
  return db_
      .prepared(
          "SELECT id FROM run WHERE state IN ('leased', 'running') AND lease_expires_ms <= :now ORDER BY id")
      .bind(":now", now)
      .all([](const Statement& row) { return static_cast<RunId>(row.integer(0)); });
}

void TrialStore::ask_to_stop(const std::vector<RunId>& runs, const std::string& reason) {
  for (const RunId run : runs)
    db_.prepared("UPDATE run SET stop_reason = :reason WHERE id = :run AND state IN ('leased', 'running')")
        .bind(":reason", reason)
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
      .prepared(R"sql(SELECT 1 FROM run JOIN trial t ON t.run_id = run.id
                            WHERE run.id = :run AND run.state IN ('leased', 'running'))sql")
      .bind(":run", run)
      .one([](const Statement&) { return true; })
      .has_value();
}

std::vector<RunId> TrialStore::under_way_on(const std::string& worker) const {
  return db_
      .prepared("SELECT id FROM run WHERE state IN ('leased', 'running') AND worker = :worker ORDER BY id")
      .bind(":worker", worker)
      .all([](const Statement& row) { return static_cast<RunId>(row.integer(0)); });
}

void TrialStore::start(RunId run, const Started& started, Time now) {
  Transaction transaction{db_, Transaction::kSavepoint};
  if (!under_way(run)) throw not_under_way(run);
  const RunRecord record = this->run(run);
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
  if (started.resumed_from_run != 0 && started.resumed_from_step) {
    if (this->run(started.resumed_from_run).trial != record.trial)
      throw Error{Code::kFailedPrecondition, "run " + std::to_string(run) + " says it resumed from run " +
                                                 std::to_string(started.resumed_from_run) +
                                                 ", which is of another trial"};
    MetricStore{db_}.copy(started.resumed_from_run, run, *started.resumed_from_step);
  }
  transaction.commit();
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

/// How many of the newest runs were lost one after the other, none further than those before it.
int TrialStore::losses_in_a_row(TrialId trial) const {
  int losses = 0;
  std::uint32_t furthest = 0;
  for (const RunRecord& run : runs_of(trial)) {
    if (!run.started && run.state != RunState::kLost) continue;  // nothing ran
    losses = run.state != RunState::kLost ? 0 : run.step > furthest ? 1 : losses + 1;
    furthest = std::max(furthest, run.step);
  }
  return losses;
}

TrialState TrialStore::end(RunId run, const Ended& how, Time now) {
  Transaction transaction{db_, Transaction::kSavepoint};
  if (!under_way(run)) throw not_under_way(run);
  Ended ended = how;
  db_.prepared(
         R"sql(UPDATE run SET state = :state, reason = :reason, exit_code = :exit_code, signal = :signal, ended_ms = :now
                     WHERE id = :run)sql")
      .bind(":state", to_text(ended.state))
      .bind(":reason", ended.reason)
      .bind(":exit_code", ended.exit_code)
      .bind(":signal", ended.signal)
      .bind(":now", now)
      .bind(":run", run)
      .run();
  const TrialRecord trial = get(this->run(run).trial);
  if (ended.state == RunState::kLost && losses_in_a_row(trial.id) >= kLossesInARow) {
    ended = {.state = RunState::kFailed,
             .reason = how.reason + "; so ended " + std::to_string(kLossesInARow) +
                       " attempts in a row, none further than those before: it may take its worker down",
             .retryable = false};
    db_.prepared("UPDATE run SET state = 'failed', reason = :reason WHERE id = :run")
        .bind(":reason", ended.reason)
        .bind(":run", run)
        .run();
  }
  const bool failed = ended.state == RunState::kFailed;
  const int failures = trial.failures + (failed ? 1 : 0);
  TrialState next = TrialState::kQueued;
  if (ended.state == RunState::kCompleted)
    next = TrialState::kCompleted;
  else if (failed && (!ended.retryable || failures > trial.max_retries))
    next = TrialState::kFailed;
  else if (!claimed(trial.id))
    next = TrialState::kCancelled;
  const bool finished = next != TrialState::kQueued;
  db_.prepared(
         R"sql(UPDATE trial SET state = :state, failures = :failures, reason = :reason, waiting = '', not_before_ms = :not_before,
                                      finished_ms = :finished WHERE id = :trial)sql")
      .bind(":state", to_text(next))
      .bind(":failures", failures)
      .bind(":reason", failed ? ended.reason : std::string{})
      .bind(":not_before", failed && !finished ? now + back_off(failures) : Time{})
      .bind(":finished", finished ? std::optional{now} : std::nullopt)
      .bind(":trial", trial.id)
      .run();
  transaction.commit();
  return next;
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
