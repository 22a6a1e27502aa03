// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "storage/measured_store.h"
#include "storage/metric_store.h"
#include "storage/part_store.h"
#include "storage/probe_store.h"
#include "storage/trial_store.h"
#include "storage/unfilled.h"
#include "storage/weights_store.h"

// From a run's start to its end, and what becomes of its trial.
namespace abl::storage {
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

std::string held_reason(int attempts, const char* what, const std::string& last) {
  return fmt::format("held: {} attempts in a row {}; release it with 'ablate retry <sweep> --held'. Last: {}",
                     attempts, what, last);
}

Error not_under_way(RunId run) {
  return Error{Code::kFailedPrecondition,
               "run " + std::to_string(run) +
                   " is no longer running here: its lease expired or moved to another attempt"};
}

}  // namespace

void TrialStore::launch(RunId run, Time when, Time now) {
  if (!under_way(run)) throw not_under_way(run);
  db_.prepared(
         "UPDATE run SET state = 'running', started_ms = MAX(leased_ms, MIN(:when, :now)) WHERE id = :run")
      .bind(":when", when)
      .bind(":now", now)
      .bind(":run", run)
      .run();
  db_.prepared("UPDATE trial SET state = 'running' WHERE id = (SELECT trial_id FROM run WHERE id = :run)")
      .bind(":run", run)
      .run();
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
      UPDATE run SET state = 'running', started_ms = COALESCE(started_ms, :now), total_steps = :total, directory = :directory, environment_json = :environment,
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
  if (!get(record.trial).command_json.empty())  // the trainer's model is looked into when it is trained
    ProbeStore{db_}.copy(before->id, run, *started.resumed_from_step, now);
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
    if (run.ended) add_gpu_time(trial, id, run.leased - *run.ended);  // until its end, that is counted again
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
void TrialStore::add_gpu_time(const TrialRecord& trial, RunId run, Milliseconds time) {
  const int slots = PartStore{db_}.slots_of(run);
  db_.prepared(R"sql(UPDATE sweep_count SET gpu_ms = MAX(0, gpu_ms + :took)
                     WHERE sweep_id IN (SELECT sweep_id FROM sweep_trial WHERE trial_id = :trial AND NOT withdrawn))sql")
      .bind(":took", std::int64_t{time.count()} * std::max(1, slots > 0 ? slots : trial.gpus))
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
  // a worker that does not reach the others will not next time
  const bool divided = lost && !ended.silent && !PartStore{db_}.of(id).empty();
  const bool may_be_cause = lost && (run.alone || ended.worker_trouble || divided);
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
    trial.reason = held_reason(
        trial.deaths,
        ended.worker_trouble ? "left their worker unhealthy (does the trial fill its disk?)"
        : divided ? "over several workers were lost before they came further (do these reach each other?)"
                  : "ended when their worker died running only this trial (out of memory?)",
        ended.reason);
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
  add_gpu_time(trial, run.id,
               Milliseconds{std::llround(static_cast<double>(took.count()) / (1 + ended.beside))});
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

}  // namespace abl::storage
