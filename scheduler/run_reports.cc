// SPDX-License-Identifier: Apache-2.0
#include "scheduler/run_reports.h"

#include <fmt/format.h>

#include <algorithm>

#include "scheduler/sweep_control.h"
#include "storage/metric_store.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"
#include "storage/weights_store.h"

namespace abl::scheduler {
namespace {

using ablate::v1::RunBatch;
using ablate::v1::RunEnded;
using storage::RunId;
using storage::RunState;
using storage::TrialStore;

Reported fence(RunId run, std::string reason) { return {.run = run, .fenced = std::move(reason)}; }

/// Nothing when this worker's run is not in this store.
std::optional<storage::RunRecord> find_run(storage::Database& db, const std::string& worker, RunId id) {
  try {
    storage::RunRecord run = TrialStore{db}.run(id);
    if (run.worker == worker) return run;
  } catch (const Error& error) {
    if (error.code() != Code::kNotFound) throw;
  }
  return std::nullopt;
}

std::string fence_reason(const std::optional<storage::RunRecord>& run) {
  return run ? fmt::format("the run is {} here{}{}", to_text(run->state), run->reason.empty() ? "" : ": ",
                           run->reason)
             : std::string{"this scheduler knows no such run of this worker"};
}

/// For a run that its worker still has and that is not under way: acknowledged when it ended by its own word,
/// which the worker did not hear confirmed, otherwise fenced.
Reported over(const std::optional<storage::RunRecord>& run, RunId id) {
  if (run && run->last_seq > 0 && run->state != RunState::kLost) return {.run = id, .stored = run->last_seq};
  return fence(id, fence_reason(run));
}

Reported end_run(storage::Database& db, const storage::RunRecord& run, const TrialStore::Ended& ended,
                 Time now) {
  const storage::TrialState state = TrialStore{db}.end(run.id, ended, now);
  return {.run = run.id,
          .ended = true,
          .note = fmt::format("run {} (trial {}, attempt {}) on {}: {}{}{}; the trial is {}", run.id,
                              run.trial, run.attempt, run.worker, to_text(ended.state),
                              ended.reason.empty() ? "" : ", ", ended.reason, to_text(state)),
          .sweeps = sweeps_of(db, run.trial)};
}

std::map<std::string, std::string> weight_digests(const ablate::v1::RunStarted& started) {
  return {started.weights().begin(), started.weights().end()};
}

/// Ends a run whose worker has another version of its data or weights: the worker's fault, not the trial's.
/// Nothing where it has the right ones.
std::optional<Reported> end_wrong_version(storage::Database& db, const storage::RunRecord& run,
                                          const ablate::v1::RunStarted& started, Time now) {
  const TrialStore trials{db};
  const std::string data = trials.wrong_data(run, started.data_fingerprint());
  const auto weights = storage::WeightsStore{db}.wrong(run, weight_digests(started));
  if (data.empty() && !weights) return std::nullopt;
  const std::string how = data.empty() ? weights->how : data;
  Reported reported = end_run(db, run, {.state = RunState::kStopped, .reason = how}, now);
  reported.fenced = how;
  if (data.empty())
    reported.wrong_weights = weights->name;
  else
    reported.wrong_data = trials.get(run.trial).data;
  return reported;
}

TrialStore::Started started_record(const ablate::v1::RunStarted& started) {
  return {.total_steps = started.total_steps(),
          .data_fingerprint = started.data_fingerprint(),
          .directory = started.directory(),
          .environment_json = started.environment_json(),
          .weights = weight_digests(started),
          .resumed_from_step =
              started.has_resumed_from_step() ? std::optional{started.resumed_from_step()} : std::nullopt,
          .resumed_from_run = started.resumed_from_run(),
          .bit_exact = started.bit_exact()};
}

TrialStore::Ended ended_record(const RunEnded& ended) {
  TrialStore::Ended record{.reason = ended.reason(), .retryable = ended.retryable()};
  switch (ended.status()) {
    case RunEnded::STATUS_COMPLETED:
      record.state = RunState::kCompleted;
      break;
    case RunEnded::STATUS_STOPPED:
      record.state = RunState::kStopped;
      break;
    case RunEnded::STATUS_LOST:
      record.state = RunState::kLost;
      break;
    default:
      record.state = RunState::kFailed;
  }
  if (ended.has_exit_code()) record.exit_code = ended.exit_code();
  if (ended.has_signal()) record.signal = ended.signal();
  return record;
}

/// Throws: Error{kInvalidArgument} when the lists of a series differ in length.
std::vector<storage::Series> series_records(const RunBatch& batch) {
  std::vector<storage::Series> records;
  for (const ablate::v1::Series& series : batch.series()) {
    if (series.steps_size() != series.values_size() || series.steps_size() != series.times_ms_size())
      throw Error{
          Code::kInvalidArgument,
          fmt::format(
              "metric {} came with {} steps, {} values and {} times: one of each for a point was expected",
              series.name(), series.steps_size(), series.values_size(), series.times_ms_size())};
    records.push_back({.name = series.name(),
                       .steps = {series.steps().begin(), series.steps().end()},
                       .values = {series.values().begin(), series.values().end()},
                       .times_ms = {series.times_ms().begin(), series.times_ms().end()}});
  }
  return records;
}

}  // namespace

Reported store_batch(storage::Database& db, const std::string& worker, const RunBatch& batch, Time now) {
  TrialStore trials{db};
  storage::MetricStore metrics{db};
  const auto run = find_run(db, worker, batch.run());
  if (run && batch.seq() <= run->last_seq) return {.run = run->id, .stored = run->last_seq};
  if (!run || !trials.under_way(run->id)) return fence(batch.run(), fence_reason(run));
  metrics.accept(run->id, batch.seq());

  Reported reported{.run = run->id};
  if (batch.has_started())
    if (auto wrong = end_wrong_version(db, *run, batch.started(), now)) return *std::move(wrong);
  try {
    const std::vector<storage::Series> series = series_records(batch);
    if (batch.has_started()) trials.start(run->id, started_record(batch.started()), now);
    metrics.append(run->id, series);
  } catch (
      const Error& error) {  // what this run says cannot be stored, and would be the same when said again
    if (error.code() != Code::kFailedPrecondition && error.code() != Code::kInvalidArgument) throw;
    reported =
        end_run(db, *run, {.state = RunState::kFailed, .reason = error.what(), .retryable = false}, now);
    reported.fenced = error.what();
    return reported;
  }
  if (!batch.log().empty()) metrics.append_log(run->id, batch.log());
  for (const ablate::v1::Checkpoint& checkpoint : batch.checkpoints())
    trials.add_checkpoint({.run = run->id,
                           .step = checkpoint.step(),
                           .host = checkpoint.host().empty() ? run->host : checkpoint.host(),
                           .path = checkpoint.path(),
                           .sha256 = checkpoint.sha256()});
  if (batch.has_ended())
    reported = end_run(db, *run, ended_record(batch.ended()), now);
  else
    reported.sweeps = sweeps_of(db, run->trial);
  reported.stored = batch.seq();
  return reported;
}

Reported store_refusal(storage::Database& db, const std::string& worker, const ablate::v1::Refused& refused,
                       Time now) {
  const auto run = find_run(db, worker, refused.run());
  if (!run || !TrialStore{db}.under_way(run->id)) return {.run = refused.run(), .ended = true};
  return end_run(db, *run,
                 {.state = refused.permanent() ? RunState::kFailed : RunState::kStopped,
                  .reason = fmt::format("worker {} refused it: {}", worker, refused.reason()),
                  .retryable = false},
                 now);
}

Reported return_unassigned(storage::Database& db, RunId run, Time now) {
  if (!TrialStore{db}.under_way(run)) return {.run = run};
  return end_run(db, TrialStore{db}.run(run),
                 {.state = RunState::kStopped, .reason = "its worker left before it was assigned"}, now);
}

std::vector<Reported> renew(storage::Database& db, const std::string& worker, const std::vector<RunId>& runs,
                            Time expires) {
  std::vector<Reported> reports;
  for (const RunId id : runs) {
    const auto run = find_run(db, worker, id);
    if (!run || !TrialStore{db}.renew(id, expires)) reports.push_back(over(run, id));
  }
  return reports;
}

std::vector<Reported> settle(storage::Database& db, const std::string& worker, const std::vector<RunId>& runs,
                             Time now, Time expires) {
  TrialStore trials{db};
  std::vector<Reported> reports;
  const std::vector<RunId> under_way = trials.under_way_on(worker);
  for (const RunId id : under_way) {
    const storage::RunRecord run = trials.run(id);
    if (std::find(runs.begin(), runs.end(), id) == runs.end()) {
      reports.push_back(end_run(
          db, run,
          {.state = RunState::kLost, .reason = fmt::format("worker {} came back without it", worker)}, now));
      continue;
    }
    trials.renew(id, expires);
    reports.push_back({.run = id,
                       .stored = run.last_seq,
                       .stop = run.stop_reason,  // it may not have heard
                       .note = fmt::format("run {} (trial {}, attempt {}) goes on on {}", id, run.trial,
                                           run.attempt, worker)});
  }
  for (const RunId id : runs)
    if (std::find(under_way.begin(), under_way.end(), id) == under_way.end())
      reports.push_back(over(find_run(db, worker, id), id));
  return reports;
}

std::vector<Reported> expire(storage::Database& db, Time now) {
  TrialStore trials{db};
  std::vector<Reported> reports;
  for (const RunId id : trials.expired(now)) {
    const storage::RunRecord run = trials.run(id);
    Reported report = end_run(db, run,
                              {.state = RunState::kLost,
                               .reason = fmt::format("its lease ran out: worker {} was silent", run.worker)},
                              now);
    report.fenced = "its lease ran out";
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace abl::scheduler
