// SPDX-License-Identifier: Apache-2.0
#include "scheduler/run_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/unasked_stop.h"
#include "base/utf8.h"
#include "protocol/meeting_place.h"
#include "storage/measured_store.h"
#include "storage/metric_store.h"
#include "storage/part_store.h"
#include "storage/probe_store.h"
#include "storage/sqlite_error.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"
#include "storage/weights_store.h"
#include "storage/worker_store.h"
#include "views/views.h"

namespace abl::scheduler {
namespace {

using ablate::v1::RunBatch;
using ablate::v1::RunEnded;
using storage::RunId;
using storage::RunState;
using storage::TrialStore;

std::vector<std::string> sweeps_of(storage::Database& db, storage::TrialId trial) {
  return storage::SweepStore{db}.names_of(trial);
}

Reported fence(RunId run, std::string reason) { return {.run = run, .fenced = std::move(reason)}; }

/// Whether a worker's run is another one than the stored one of its number: of another results file, or given
/// by a copy of this one. A worker of an older release says no token.
bool is_another(const storage::RunRecord& run, const std::string& token) {
  return !run.token.empty() && !token.empty() && run.token != token;
}

/// Nothing when this worker's run is not in this store.
std::optional<storage::RunRecord> find_run(storage::Database& db, const std::string& worker, RunId id,
                                           const std::string& token = {}) {
  try {
    storage::RunRecord run = TrialStore{db}.run(id);
    if (run.worker == worker && !is_another(run, token)) return run;
  } catch (const Error& error) {
    if (error.code() != Code::kNotFound) throw;
  }
  return std::nullopt;
}

constexpr const char* kUnknown =
    "this results file has no such run of this worker; the run belongs to another file, or to a newer copy "
    "of this one";

std::string fence_reason(const std::optional<storage::RunRecord>& run) {
  return run ? fmt::format("the run is {} here{}{}", to_text(run->state), run->reason.empty() ? "" : ": ",
                           run->reason)
             : std::string{kUnknown};
}

/// For a run that its worker still has and that is not under way: acknowledged when it ended by its own word,
/// which the worker did not hear confirmed, otherwise fenced.
Reported over(const std::optional<storage::RunRecord>& run, RunId id) {
  if (run && run->last_seq > 0 && run->state != RunState::kLost) return {.run = id, .stored = run->last_seq};
  return fence(id, fence_reason(run));
}

/// Whether the worker's program is another than the one that was here last.
bool is_another_program(storage::Database& db, const ablate::v1::Hello& hello) {
  for (const storage::WorkerRecord& worker : storage::WorkerStore{db}.list())
    if (worker.name == hello.name()) return worker.instance != hello.instance();
  return false;
}

Reported end_run(storage::Database& db, const storage::RunRecord& run, const TrialStore::Ended& ended,
                 Moment now) {
  storage::TrialState state = TrialStore{db}.end(run.id, ended, now);
  if (state == storage::TrialState::kQueued && storage::BreakerStore{db}.hold_again(run.trial, now.wall))
    state = storage::TrialState::kHeld;
  return {.run = run.id,
          .ended = true,
          .note = fmt::format("run {} (trial {}, attempt {}) on {}: {}{}{}; the trial is {}", run.id,
                              run.trial, run.attempt, run.worker, to_text(ended.state),
                              ended.reason.empty() ? "" : ", ", ended.reason, to_text(state)),
          .trial = run.trial,
          .attempt = run.attempt,
          .state = ended.state,
          .trial_state = state,
          .reason = ended.reason,
          .failure = ended.failure,
          .sweeps = sweeps_of(db, run.trial)};
}

std::map<std::string, std::string> weight_digests(const ablate::v1::RunStarted& started) {
  return {started.weights().begin(), started.weights().end()};
}

/// Ends a run whose worker has another version of its data or weights: the worker's fault, not the trial's.
/// Nothing where it has the right ones.
std::optional<Reported> end_wrong_version(storage::Database& db, const storage::RunRecord& run,
                                          const ablate::v1::RunStarted& started, Moment now) {
  const TrialStore trials{db};
  const std::string data = trials.wrong_data(run, started.data_fingerprint());
  const auto weights = storage::WeightsStore{db}.wrong(run, weight_digests(started));
  if (data.empty() && !weights) return std::nullopt;
  const std::string how = data.empty() ? weights->how : data;
  Reported reported = end_run(db, run, {.state = RunState::kStopped, .reason = how}, now);
  reported.fenced = how;
  if (data.empty())
    reported.wrong_weights = {weights->name, weights->wanted};
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

/// Of a failed run. A worker of an older release does not say it.
protocol::FailureClass failure_class(const RunEnded& ended) {
  using protocol::FailureClass;
  switch (ended.failure()) {
    case ablate::v1::FAILURE_CLASS_INFRASTRUCTURE:
      return FailureClass::kInfrastructure;
    case ablate::v1::FAILURE_CLASS_RESOURCES:
      return FailureClass::kResources;
    case ablate::v1::FAILURE_CLASS_DATA:
      return FailureClass::kData;
    default:
      return FailureClass::kTrial;
  }
}

/// How long a run took, as its worker says it: none takes a thousand years.
Milliseconds time_of(const RunEnded& ended) {
  constexpr Milliseconds kLongest = std::chrono::years{1000};
  return Milliseconds{std::min<std::uint64_t>(ended.took_ms(), kLongest.count())};
}

/// `was_asked`: this scheduler has told the run to stop. A worker that stops says so itself.
/// Throws: Error{kInvalidArgument} for a status that this release does not know.
TrialStore::Ended ended_record(const RunEnded& ended, bool was_asked) {
  TrialStore::Ended record{.reason = ended.reason(), .retryable = ended.retryable()};
  switch (ended.status()) {
    case RunEnded::STATUS_COMPLETED:
      record.state = RunState::kCompleted;
      break;
    case RunEnded::STATUS_STOPPED:
      record.state = RunState::kStopped;
      if (was_asked || ended.asked()) break;
      record.state = RunState::kFailed;  // it would be queued again at once, and again
      record.reason = unasked_stop(ended.reason());
      break;
    case RunEnded::STATUS_LOST:
      record.state = RunState::kLost;
      record.worker_trouble = ended.worker_trouble();
      break;
    case RunEnded::STATUS_FAILED:
      record.state = RunState::kFailed;
      break;
    default:
      throw Error{Code::kInvalidArgument, fmt::format("unknown end of a run: status {}{}{}", ended.status(),
                                                      ended.reason().empty() ? "" : ", ", ended.reason())};
  }
  if (ended.has_exit_code()) record.exit_code = ended.exit_code();
  if (ended.has_took_ms()) record.took = time_of(ended);
  if (ended.has_signal()) record.signal = ended.signal();
  record.failure = failure_class(ended);
  record.log_patterns = {ended.log_patterns().begin(), ended.log_patterns().end()};
  return record;
}

/// `TrialRecord::pack` and the GPUs of a trial that may share one.
std::optional<std::pair<std::string, int>> pack_of(storage::Database& db, storage::TrialId trial) {
  return db.prepared("SELECT pack, gpus FROM trial WHERE id = :trial AND pack <> ''")
      .bind(":trial", trial)
      .one([](const storage::Statement& row) {
        return std::pair{row.text(0), static_cast<int>(row.integer(1))};
      });
}

/// What the end of a run that shared its GPU says of runs like it: one that ran out of memory is not its
/// trial's failure, and where they do not get more done together, each has its GPU for itself from now on.
void judge_sharing(storage::Database& db, const storage::RunRecord& run, const std::string& pack, int gpus,
                   TrialStore::Ended& ended) {
  storage::MeasuredStore measured{db};
  if (ended.state == RunState::kFailed && ended.failure == protocol::FailureClass::kResources) {
    const std::string why = fmt::format("ran out of memory beside {} other run{} on its GPU", run.packed_with,
                                        run.packed_with == 1 ? "" : "s");
    measured.stop_packing(pack, gpus, why);
    ended.state = RunState::kLost;
    ended.reason = fmt::format("packed: {}: {}", why, ended.reason);
  }
  constexpr double kMostly = 0.5;  // otherwise its rate says little of that
  if (ended.state != RunState::kCompleted || ended.beside < kMostly) return;
  const auto known = measured.packing(pack, gpus);
  const double at_once = 1 + ended.beside;
  if (sharing_pays(known.steps_per_second, run.steps_per_second, at_once)) return;
  measured.stop_packing(pack, gpus,
                        fmt::format("{:.1f} runs at once did {:.2f} times the steps of one", at_once,
                                    at_once * run.steps_per_second / known.steps_per_second));
}

/// Metric names of a run, all its batches together, and the length of each: the rest is not stored.
constexpr std::size_t kMostNames = 2000, kLongestName = 250;

/// What of a batch is not stored: how many series, and the first of them, and why.
struct LeftOut {
  std::uint32_t series = 0;
  std::string example;

  void add(const std::string& name, const std::string& why) {
    if (series++ == 0) example = fmt::format("'{}' ({})", name, why);
  }
};

/// The metrics that columns of the trial's sweeps take: stored whatever else a run says.
std::set<std::string> metrics_of_columns(storage::Database& db, storage::TrialId trial) {
  const auto names = db.prepared(R"sql(
      SELECT DISTINCT c.source FROM sweep_trial st JOIN sweep_column c ON c.sweep_id = st.sweep_id
      WHERE st.trial_id = :trial AND st.withdrawn = 0 AND c.kind = 'metric')sql")
                         .bind(":trial", trial)
                         .all([](const storage::Statement& row) { return row.text(0); });
  return {names.begin(), names.end()};
}

/// The series of a batch that may be stored.
/// Throws: Error{kInvalidArgument} when the lists of a series differ in length.
std::vector<storage::Series> series_records(storage::Database& db, const storage::RunRecord& run,
                                            const RunBatch& batch, LeftOut& left_out) {
  const storage::MetricStore metrics{db};
  std::set<std::string> names;                  // that the run has
  std::optional<std::set<std::string>> wanted;  // looked up only where the limit is reached
  bool looked = false;
  std::vector<storage::Series> records;
  for (const ablate::v1::Series& series : batch.series()) {
    if (series.steps_size() != series.values_size() || series.steps_size() != series.times_ms_size())
      throw Error{
          Code::kInvalidArgument,
          fmt::format(
              "metric {} came with {} steps, {} values and {} times: one of each for a point was expected",
              series.name(), series.steps_size(), series.values_size(), series.times_ms_size())};
    if (series.name().empty() || series.name().size() > kLongestName) {
      left_out.add(valid_utf8(series.name().substr(0, 40)) + "…",
                   fmt::format("a metric name of {} bytes: from 1 to {} were expected", series.name().size(),
                               kLongestName));
      continue;
    }
    if (protocol::is_probe_metric(series.name())) {
      left_out.add(series.name(), "names that begin with probe: are reserved; send a probe event");
      continue;
    }
    if (!std::exchange(looked, true)) {
      names = metrics.names(batch.run());
      std::erase_if(names, protocol::is_probe_metric);  // which count by themselves
    }
    const auto is_wanted = [&] {
      if (!wanted) wanted = metrics_of_columns(db, run.trial);
      return wanted->contains(series.name());
    };
    if (!names.contains(series.name()) && names.size() >= kMostNames && !is_wanted()) {
      left_out.add(series.name(), fmt::format("a run has at most {} metric names", kMostNames));
      continue;
    }
    names.insert(series.name());
    records.push_back({.name = series.name(),
                       .steps = {series.steps().begin(), series.steps().end()},
                       .values = {series.values().begin(), series.values().end()},
                       .times_ms = {series.times_ms().begin(), series.times_ms().end()}});
  }
  return records;
}

/// As many as are kept of a run, by step, and the best: the others of a batch need not be written first.
std::map<std::uint32_t, const ablate::v1::Checkpoint*> newest_checkpoints(const RunBatch& batch) {
  std::map<std::uint32_t, const ablate::v1::Checkpoint*> newest;
  const ablate::v1::Checkpoint* best = nullptr;
  for (const ablate::v1::Checkpoint& checkpoint : batch.checkpoints()) {
    newest[checkpoint.step()] = &checkpoint;
    if (!checkpoint.best().empty() && (!best || checkpoint.step() >= best->step())) best = &checkpoint;
    if (newest.size() > TrialStore::kMostCheckpoints) newest.erase(newest.begin());
  }
  if (best) newest.try_emplace(best->step(), best);  // others may take its weights
  return newest;
}

/// What a batch says but for its end.
void store_content(storage::Database& db, const storage::RunRecord& run, const RunBatch& batch, Time now) {
  TrialStore trials{db};
  storage::MetricStore metrics{db};
  metrics.accept(run.id, batch.seq());
  LeftOut left_out;
  const std::vector<storage::Series> series = series_records(db, run, batch, left_out);
  if (batch.has_launched_ms()) trials.launch(run.id, Time{Milliseconds{batch.launched_ms()}}, now);
  if (batch.has_started()) trials.start(run.id, started_record(batch.started()), now);
  metrics.append(run.id, series);
  metrics.add_refused(run.id, batch.refused_lines(), batch.refused_example());
  metrics.add_refused(run.id, left_out.series, left_out.example);
  metrics.add_repeated(run.id, batch.repeated_points());
  if (!batch.rendezvous().empty()) {
    if (!protocol::is_meeting_place(batch.rendezvous()))
      throw Error{Code::kInvalidArgument, "where the ranks of a run meet: HOST:PORT was expected"};
    storage::PartStore{db}.meet(run.id, batch.rendezvous());
  }
  metrics.append_log(run.id, batch.log());
  for (const auto& probe : batch.probes()) try {
      const views::ProbeRecord record = views::probe_record(probe);
      storage::ProbeStore{db}.put(run.id, record.found, record.step, record.pictures, now);
    } catch (const Error& error) {  // the run's own: what else it says stays
      if (error.code() != Code::kInvalidArgument) throw;
      metrics.append_log(run.id, fmt::format("[scheduler] probe result not stored: {}\n", error.what()));
    }
  for (const auto& [step, checkpoint] : newest_checkpoints(batch))
    trials.add_checkpoint({.run = run.id,
                           .step = step,
                           .host = checkpoint->host().empty() ? run.host : checkpoint->host(),
                           .path = checkpoint->path(),
                           .sha256 = checkpoint->sha256(),
                           .best = checkpoint->best()});
}

/// What this results file lacks of what a batch refers to, because it is older than the run: a copy took the
/// place of the file that had it. Empty: nothing.
std::string missing_here(storage::Database& db, const storage::RunRecord& run, const RunBatch& batch) {
  if (batch.seq() > run.last_seq + 1)
    return fmt::format(
        "batches {} to {} of it are not in this results file, and its worker has sent them already",
        run.last_seq + 1, batch.seq() - 1);
  const RunId from = batch.started().resumed_from_run();
  if (from == 0 || find_run(db, run.worker, from)) return {};
  try {
    (void)TrialStore{db}.run(from);  // of another worker
    return {};
  } catch (const Error&) {
    return fmt::format("it resumes run {}, which is not in this results file", from);
  }
}

}  // namespace

Reported store_batch(storage::Database& db, const std::string& worker, const RunBatch& batch, bool first,
                     Moment now, double beside) {
  const auto run = find_run(db, worker, batch.run(), batch.token());
  if (run && batch.seq() <= run->last_seq) return {.run = run->id, .stored = run->last_seq};
  if (!run || !TrialStore{db}.under_way(run->id)) return fence(batch.run(), fence_reason(run));
  const auto end_here = [&](TrialStore::Ended how) {
    Reported reported = end_run(db, *run, how, now);
    reported.fenced = how.reason;
    return reported;
  };
  if (first)
    if (std::string missing = missing_here(db, *run, batch); !missing.empty())
      return end_here({.state = RunState::kLost, .reason = missing + ": the file is older than the run"});
  if (batch.seq() > run->last_seq + 1)
    throw Error{Code::kFailedPrecondition,
                fmt::format("batch {} of run {} came before batch {}; send the missing ones first",
                            batch.seq(), run->id, run->last_seq + 1)};
  if (batch.has_started())
    if (auto wrong = end_wrong_version(db, *run, batch.started(), now)) return *std::move(wrong);
  std::optional<TrialStore::Ended> ended;
  try {
    storage::Transaction content{db, storage::Transaction::kSavepoint};
    store_content(db, *run, batch, now.wall);
    if (batch.has_ended()) ended = ended_record(batch.ended(), !run->stop_reason.empty());
    content.commit();
  } catch (const Error& error) {  // trouble of the store: everything is sent again
    if (!storage::is_of_what_is_stored(error.code()) || !db.in_transaction()) throw;
    return end_here({.state = RunState::kFailed, .reason = error.what(), .retryable = false});
  }
  const auto pack = ended ? pack_of(db, run->trial) : std::nullopt;
  if (pack) ended->beside = beside;
  if (pack && run->packed_with > 0)
    judge_sharing(db, TrialStore{db}.run(run->id), pack->first, pack->second, *ended);
  Reported reported =
      ended ? end_run(db, *run, *ended, now) : Reported{.run = run->id, .sweeps = sweeps_of(db, run->trial)};
  reported.stored = batch.seq();
  if (pack) {
    const auto known = storage::MeasuredStore{db}.packing(pack->first, pack->second);
    reported.pack = pack->first;
    reported.memory_bytes = known.fits() ? known.memory_bytes : 0;
    if (!known.stopped.empty())
      reported.note += "; runs like it have their GPUs for themselves: " + known.stopped;
  }
  reported.trial = run->trial;
  reported.outlived = ended && ended->state == RunState::kStopped && run->stop_reason.empty();
  if (ended && (reported.outlived || ended->state == RunState::kCompleted) && batch.ended().has_took_ms()) {
    reported.took = time_of(batch.ended());
    reported.claimants = storage::SweepStore{db}.claimants(run->trial);
  }
  return reported;
}

Reported store_refusal(storage::Database& db, const std::string& worker, const ablate::v1::Refused& refused,
                       Moment now) {
  const auto run = find_run(db, worker, refused.run());
  if (!run || !TrialStore{db}.under_way(run->id)) return {.run = refused.run(), .ended = true};
  return end_run(db, *run,
                 {.state = refused.permanent() ? RunState::kFailed : RunState::kStopped,
                  .reason = fmt::format("worker {} refused it: {}", worker, refused.reason()),
                  .retryable = false},
                 now);
}

Reported return_unassigned(storage::Database& db, RunId run, Moment now) {
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

std::vector<Reported> settle(storage::Database& db, const ablate::v1::Hello& hello, Moment now,
                             Time expires) {
  TrialStore trials{db};
  const std::string& worker = hello.name();
  const std::set<RunId> has{hello.runs().begin(), hello.runs().end()};
  const auto token_of = [&](RunId id) {
    const auto token = hello.tokens().find(id);
    return token == hello.tokens().end() ? std::string{} : token->second;
  };
  std::vector<Reported> reports;
  const std::vector<RunId> under_way = trials.under_way_on(worker);
  if (is_another_program(db, hello)) trials.note_death(under_way);  // trainers die with their worker
  for (const RunId id : under_way) {
    const storage::RunRecord run = trials.run(id);
    const bool another = is_another(run, token_of(id));
    if (!has.contains(id) || another) {
      reports.push_back(end_run(
          db, run,
          {.state = RunState::kLost, .reason = fmt::format("worker {} reconnected without it", worker)},
          now));
      if (another) reports.back().fenced = kUnknown;
      continue;
    }
    trials.renew(id, expires);
    reports.push_back({.run = id,
                       .stored = run.last_seq,
                       .stop = run.stop_reason,  // it may not have heard
                       .note = fmt::format("run {} (trial {}, attempt {}) continues on {}", id, run.trial,
                                           run.attempt, worker),
                       .trial = run.trial,
                       .attempt = run.attempt});
  }
  for (const RunId id : has) {
    if (std::find(under_way.begin(), under_way.end(), id) != under_way.end()) continue;
    const auto run = find_run(db, worker, id, token_of(id));
    if (run && trials.adopt(id, expires)) {
      // its sweep was paused while nobody knew that it lives: it is queued again when it has stopped
      const bool wanted = storage::SweepStore{db}.is_wanted(run->trial);
      if (!wanted) trials.ask_to_stop({id}, kPaused);
      reports.push_back(
          {.run = id,
           .stored = run->last_seq,
           .stop = wanted ? run->stop_reason : kPaused,
           .note = fmt::format(
               "run {} (trial {}, attempt {}) continues on {}, which had stopped sending heartbeats", id,
               run->trial, run->attempt, worker),
           .trial = run->trial,
           .attempt = run->attempt,
           .sweeps = sweeps_of(db, run->trial)});
    } else {
      reports.push_back(over(run, id));
    }
  }
  return reports;
}

std::vector<Reported> expire(storage::Database& db, Moment now) {
  TrialStore trials{db};
  std::vector<Reported> reports;
  const std::vector<RunId> expired = trials.expired(now.steady);
  trials.note_death(expired);
  for (const RunId id : expired) {
    const storage::RunRecord run = trials.run(id);
    Reported report =
        end_run(db, run,
                {.state = RunState::kLost,
                 .reason = fmt::format("lease expired: no heartbeat from worker {}", run.worker),
                 .silent = true},
                now);
    report.silent = true;
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace abl::scheduler
