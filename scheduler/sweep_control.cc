// SPDX-License-Identifier: Apache-2.0
#include "scheduler/sweep_control.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <set>
#include <vector>

#include "base/fail_point.h"
#include "base/sha256.h"
#include "config/field_table.h"
#include "config/json.h"
#include "planning/printed_table.h"
#include "scheduler/annotation.h"
#include "scheduler/budget.h"
#include "scheduler/renewal.h"
#include "scheduler/seed_growth.h"
#include "scheduler/tuning.h"
#include "storage/annotation_store.h"
#include "storage/breaker_store.h"
#include "storage/probe_store.h"
#include "storage/removal.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"
#include "sweeps/extension.h"

namespace abl::scheduler {
namespace {

/// 0: without a limit.
std::optional<std::uint32_t> limit(std::uint32_t trials) {
  return trials == 0 ? std::nullopt : std::optional{trials};
}

}  // namespace

storage::NewSweep sweep_record(const sweeps::SweepSpec& spec, const Standing& standing) {
  storage::NewSweep record{.name = spec.name,
                           .file = spec.file,
                           .text = spec.text,
                           .canonical = spec.canonical,
                           .canonical_hash = sha256_hex(spec.canonical),
                           .baseline = spec.table.baseline,
                           .paper_heading = spec.table.paper_heading,
                           .seeds = spec.seeds,
                           .seeds_rule = spec.seeds_rule ? spec.seeds_rule->json() : std::string{},
                           .probes = storage::probes_json(spec.probes),
                           .priority = standing.priority.value_or(0),
                           .owner = standing.owner,
                           .weight = standing.weight.value_or(1),
                           .max_running = limit(standing.max_running.value_or(0)),
                           .preempts = standing.preempts.value_or(false),
                           .breaker = standing.breaker.value_or(true),
                           .budget = standing.budget};
  for (const sweeps::Row& row : spec.rows)
    record.rows.push_back({.id = row.id,
                           .label = row.label,
                           .set_json = nlohmann::json(row.set).dump(),
                           .config_hash = row.config_hash,
                           .model = row.model,
                           .work_hash = row.work_hash,
                           .paper = row.paper,
                           .levels = row.set,
                           .marks = row.marks,
                           .group = row.group,
                           .baseline = row.baseline == spec.table.baseline ? std::string{} : row.baseline,
                           .not_trained = row.not_trained,
                           .not_trained_why = row.not_trained_why,
                           .other_sweep = row.sweep});
  for (const sweeps::Column& column : spec.table.columns)
    record.columns.push_back(planning::stored_column(column));
  return record;
}

std::vector<storage::NewTrial> trial_records(const sweeps::SweepSpec& spec) {
  const std::string command = spec.command ? nlohmann::json(spec.command->argv).dump() : std::string{};
  std::vector<storage::NewTrial> records;
  std::vector<sweeps::TrialSpec> trials = sweeps::expand(spec);
  const auto row_of = [&](const sweeps::TrialSpec& trial) -> const sweeps::Row& {
    return spec.rows[static_cast<std::size_t>(trial.row)];
  };
  const auto data_of = [&](const sweeps::Row& row) { return row.data.empty() ? spec.data : row.data; };
  std::vector<std::vector<storage::NewSource>> sources(trials.size());
  for (std::size_t i = 0; i < trials.size(); ++i)
    for (const auto& [name, take, from] : trials[i].sources)
      sources[i].push_back({.name = name,
                            .take = take,
                            .config_hash = trials[from].config_hash,
                            .data = data_of(row_of(trials[from])),
                            .result_version = trials[from].result_version});
  for (sweeps::TrialSpec& trial : trials) {
    const sweeps::Row& row = row_of(trial);
    records.push_back({.row = trial.row,
                       .seed_index = trial.seed_index,
                       .seed = trial.seed,
                       .config = std::move(trial.config),
                       .config_hash = std::move(trial.config_hash),
                       .result_version = trial.result_version,
                       .data = data_of(row),
                       .command_json = command,
                       .reusable = !spec.command || spec.command->reuse,
                       .gpus = spec.gpus,
                       .max_retries = spec.max_retries,
                       .split = spec.split,
                       .retry_on = spec.retry_on,
                       .time_limit = spec.limits.time,
                       .stall_limit = spec.limits.stall,
                       .log_limit = spec.limits.log,
                       .nan_fails = spec.limits.nan_fails,
                       .weights = row.weights,
                       .where = spec.where,
                       .pack = spec.pack ? row.config_hash : "",
                       .sources = std::move(sources[records.size()])});
  }
  return records;
}

namespace {

/// Sets what is given for the sweep and its tuning sweeps.
void adjust(storage::Database& db, storage::SweepId of, const Standing& standing, Time now) {
  storage::SweepStore store{db};
  if (standing.breaker) store.set_breaker(of, *standing.breaker);
  for (const storage::SweepId sweep : with_tuning(db, of)) {
    if (standing.priority) store.set_priority(sweep, *standing.priority);
    if (standing.weight) store.set_weight(sweep, *standing.weight);
    if (standing.preempts) store.set_preempts(sweep, *standing.preempts);
    if (standing.max_running) store.set_max_running(sweep, limit(*standing.max_running));
    store.set_budget(sweep, standing.budget);
    refresh_budget(db, sweep, now);  // before one of its trials can be leased
  }
}

Submission store_sweep(storage::Database& db, const sweeps::SweepSpec& spec, const Standing& standing,
                       Time now) {
  storage::SweepStore store{db};
  if (const auto stored = store.find(spec.name)) {
    if (stored->canonical_hash == sha256_hex(spec.canonical)) {
      adjust(db, stored->id, standing, now);
      annotate(db, *stored, {.add_tags = standing.tags, .archived = false}, now);
      return {.created = false};
    }
    const sweeps::Growth growth = sweeps::growth(spec, stored->canonical);
    std::string message =
        growth.refused.empty()
            ? fmt::format(
                  "sweep {} already exists with different content: make it grow with 'ablate extend "
                  "FILE', or submit this one under another name",
                  spec.name)
            : fmt::format(
                  "sweep {} already exists with different content: submit this one under another name",
                  spec.name);
    for (const std::string& line : sweeps::difference(spec.canonical, stored->canonical))
      message += "\n" + line;
    throw Error{Code::kAlreadyExists, message};
  }
  if (std::ranges::all_of(spec.rows, [](const sweeps::Row& row) { return row.not_trained.has_value(); }))
    throw Error{
        Code::kInvalidArgument,
        fmt::format("sweep {}: no row is trained (row {}: {}), so there is nothing to submit; 'ablate papers "
                    "FILE' prints its table",
                    spec.name, spec.rows.front().id, spec.rows.front().not_trained_why)};
  storage::Submitted submitted = store.insert(sweep_record(spec, standing), trial_records(spec), now);
  if (standing.provenance) storage::ProvenanceStore{db}.add(submitted.sweep, *standing.provenance, now);
  storage::AnnotationStore{db}.set_tags(submitted.sweep, standing.tags);
  if (spec.tune) {
    const storage::Submitted tuning = begin_tuning(db, spec, submitted.sweep, standing, now);
    submitted.new_trials += tuning.new_trials;
    submitted.shared_trials += tuning.shared_trials;
    if (standing.provenance) storage::ProvenanceStore{db}.add(tuning.sweep, *standing.provenance, now);
    storage::TrialStore{db}.take_stops_back(tuning.sweep);
    refresh_budget(db, tuning.sweep, now);
  }
  storage::TrialStore{db}.take_stops_back(submitted.sweep);  // of trials that another sweep gave up
  grow_seeds(db, submitted.sweep, now);                      // where what it begins with is stored already
  refresh_budget(db, submitted.sweep, now);                  // a time that is over already
  fail_point(FailPoint::kSubmit);
  return {.created = true, .new_trials = submitted.new_trials, .shared_trials = submitted.shared_trials};
}

using storage::SweepState;

storage::SweepRecord get_not_cancelled(storage::Database& db, const std::string& name, const char* wish) {
  const storage::SweepRecord sweep = storage::SweepStore{db}.get(name);
  if (sweep.state == SweepState::kCancelled)
    throw Error{
        Code::kFailedPrecondition,
        fmt::format("sweep {0} is cancelled and cannot be {1}: 'ablate retry {0}' requeues its trials", name,
                    wish)};
  return sweep;
}

std::uint32_t requeue(storage::Database& db, const std::string& name, const std::string& row,
                      const storage::Retry& which, Time now) {
  storage::SweepStore store{db};
  const storage::SweepRecord record = store.get(name);
  const storage::SweepId sweep = record.id;
  storage::Removal{db}.refuse(sweep);
  std::uint32_t queued = store.retry(sweep, row, now, renewed, which);
  if (!which.seed || !record.tunes.empty()) queued += retry_tuning(db, sweep, row, which, now);
  if (queued == 0 && !which.ended && record.state == SweepState::kCancelled)
    throw Error{Code::kFailedPrecondition,
                fmt::format("sweep {0} is cancelled and has no trials {1}; 'ablate retry {0}' requeues its "
                            "cancelled trials",
                            name,
                            which.completed  ? "that are completed"
                            : which.held     ? "that are held"
                            : which.unfilled ? "with missing metrics"
                                             : "with results from before a correction")};
  for (const storage::SweepId one : with_tuning(db, sweep)) storage::TrialStore{db}.take_stops_back(one);
  grow_seeds(db, sweep, now);  // trials may have ended while it was cancelled
  return queued;
}

/// `Result` of `work`, for who waits for the commit.
template <class Result, class Work>
void change_and_tell(Coordinator& coordinator, const std::string& sweep, const char* what, Work work,
                     Coordinator::Answer<Result> answer) {
  const auto result = std::make_shared<Result>();
  coordinator.change(
      sweep, what,
      [result, work = std::move(work)](storage::Database& db, Time now) {
        *result = work(db, now);
        return Coordinator::Stops{};
      },
      [result, answer = std::move(answer)](std::exception_ptr error) {
        answer(error, error ? Result{} : *result);  // the job may have had one, which is undone
      });
}

void rename(storage::Database& db, const std::string& sweep, const std::string& name) {
  storage::SweepStore store{db};
  const storage::SweepRecord record = store.get(sweep);
  storage::Removal{db}.refuse(record.id);
  if (name == sweep) return;
  if (!record.tunes.empty())
    throw Error{
        Code::kFailedPrecondition,
        fmt::format("sweep {} has the tuning trials of sweep {}: rename that one", sweep, record.tunes)};
  nlohmann::json canonical = nlohmann::json::parse(record.canonical);
  canonical["name"] = name;  // so that the file under its new name is this sweep
  store.rename(record.id, name, config::canonical_json(canonical));
  if (!record.tuning) return;
  const std::string of_tuning = name + ".tuning";
  canonical = nlohmann::json::parse(store.get(record.tuning->name).canonical);
  canonical["name"] = of_tuning;
  store.rename(record.tuning->by, of_tuning, config::canonical_json(canonical));
}

}  // namespace

void submit_sweep(Coordinator& coordinator, sweeps::SweepSpec spec, Standing standing,
                  Coordinator::Answer<Submission> answer) {
  const std::string name = spec.name;
  change_and_tell<Submission>(
      coordinator, name, "submitted",
      [spec = std::move(spec), standing = std::move(standing)](storage::Database& db, Time now) {
        return store_sweep(db, spec, standing, now);
      },
      std::move(answer));
}

void cancel_sweep(Coordinator& coordinator, const std::string& sweep, Coordinator::Answer<> answer) {
  coordinator.change(
      sweep, "cancelled",
      [sweep](storage::Database& db, Time now) -> Coordinator::Stops {
        storage::SweepStore store{db};
        const storage::SweepRecord record = store.get(sweep);
        const bool tunes = record.tuning && (record.tuning->trials.open() + record.tuning->trials.held > 0);
        if (record.state == SweepState::kCancelled ||
            (record.trials.open() + record.trials.held == 0 && !tunes))
          return {};
        std::vector<storage::RunId> unwanted;
        for (const storage::SweepId one : with_tuning(db, record.id))
          for (const storage::RunId run : store.withdraw(one, now)) unwanted.push_back(run);
        if (const auto tuned = storage::TuningStore{db}.tuned_by(record.id)) settle_tuning(db, *tuned, now);
        storage::TrialStore{db}.ask_to_stop(unwanted, kCancelled);
        return {std::move(unwanted), kCancelled};
      },
      std::move(answer));
}

void cancel_trial(Coordinator& coordinator, const std::string& sweep, const std::string& row,
                  std::int64_t seed, Coordinator::Answer<> answer) {
  coordinator.change(
      sweep, "trial cancelled",
      [sweep, row, seed](storage::Database& db, Time now) -> Coordinator::Stops {
        const storage::SweepRecord record = storage::SweepStore{db}.get_brief(sweep);
        storage::Removal{db}.refuse(record.id);
        auto unwanted = storage::SweepStore{db}.withdraw(record.id, row, seed, now);
        if (const auto tuned = storage::TuningStore{db}.tuned_by(record.id)) settle_tuning(db, *tuned, now);
        storage::TrialStore{db}.ask_to_stop(unwanted, kCancelled);
        return {std::move(unwanted), kCancelled};
      },
      std::move(answer));
}

void adjust_sweep(Coordinator& coordinator, const std::string& sweep, Standing standing,
                  Coordinator::Answer<> answer) {
  coordinator.change(
      sweep, "adjusted",
      [sweep, standing = std::move(standing)](storage::Database& db, Time now) {
        const storage::SweepRecord record = storage::SweepStore{db}.get_brief(sweep);
        storage::Removal{db}.refuse(record.id);
        adjust(db, record.id, standing, now);
        return Coordinator::Stops{};
      },
      std::move(answer));
}

void pause_sweep(Coordinator& coordinator, const std::string& sweep, bool stop_running,
                 Coordinator::Answer<> answer) {
  coordinator.change(
      sweep, "paused",
      [sweep, stop_running](storage::Database& db, Time now) -> Coordinator::Stops {
        storage::SweepStore store{db};
        const storage::SweepRecord record = get_not_cancelled(db, sweep, "paused");
        std::vector<storage::RunId> stopped;
        for (const storage::SweepId one : with_tuning(db, record.id)) {
          store.set_state(one, SweepState::kPaused, now);
          storage::BreakerStore{db}.give_up(one, now);
        }
        if (!stop_running) return {};
        for (const storage::SweepId one : with_tuning(db, record.id))
          for (const storage::RunId run : store.own_runs(one)) stopped.push_back(run);
        storage::TrialStore{db}.ask_to_stop(stopped, kPaused);
        return {std::move(stopped), kPaused};
      },
      std::move(answer));
}

void resume_sweep(Coordinator& coordinator, const std::string& sweep, const storage::Budget& budget,
                  Coordinator::Answer<> answer) {
  coordinator.change(
      sweep, "resumed",
      [sweep, budget](storage::Database& db, Time now) {
        const storage::SweepRecord record = get_not_cancelled(db, sweep, "resumed");
        storage::SweepStore store{db};
        for (const storage::SweepId one : with_tuning(db, record.id)) {
          store.set_budget(one, budget);
          refresh_budget(db, one, now);
        }
        if (const std::string spent = refresh_budget(db, record.id, now); !spent.empty())
          throw Error{Code::kFailedPrecondition,
                      fmt::format("sweep {}: {}: give more with --max-gpu-hours or --until", sweep, spent)};
        for (const storage::SweepId one : with_tuning(db, record.id)) {
          store.set_state(one, SweepState::kActive, now);
          storage::BreakerStore{db}.want(one, now);
          storage::TrialStore{db}.take_stops_back(one);
        }
        return Coordinator::Stops{};
      },
      std::move(answer));
}

void remove_sweep(Coordinator& coordinator, const std::string& sweep,
                  Coordinator::Answer<storage::SweepId> answer) {
  change_and_tell<storage::SweepId>(
      coordinator, sweep, "is being removed",
      [sweep](storage::Database& db, Time now) { return storage::Removal{db}.begin(sweep, now); },
      std::move(answer));
}

void rename_sweep(Coordinator& coordinator, const std::string& sweep, const std::string& name,
                  Coordinator::Answer<> answer) {
  constexpr std::size_t kLongest = 100;  // as in a sweep file
  if (name.empty() || name.size() > kLongest ||
      name.find_first_not_of(config::kNameLetters) != std::string::npos)
    throw Error{Code::kInvalidArgument,
                fmt::format("invalid name '{}'; expected at most {} letters, digits, '.', '_' and '-'", name,
                            kLongest)};
  coordinator.change(
      sweep, "is renamed",
      [sweep, name](storage::Database& db, Time) {
        rename(db, sweep, name);
        return Coordinator::Stops{};
      },
      std::move(answer));
}

void rerun_rows(Coordinator& coordinator, const std::string& sweep, const std::vector<std::string>& rows,
                Coordinator::Answer<std::uint32_t> answer) {
  change_and_tell<std::uint32_t>(
      coordinator, sweep, "completed trials run again",
      [sweep, rows](storage::Database& db, Time now) {
        if (std::ranges::find(rows, "") != rows.end())  // which would be all of them
          throw Error{Code::kInvalidArgument,
                      "a row without a name; expected ids of rows: 'ablate show' has them"};
        std::uint32_t queued = 0;
        for (const std::string& row : std::set<std::string>{rows.begin(), rows.end()})
          queued += requeue(db, sweep, row, {.ended = false, .held = false, .completed = true}, now);
        return queued;
      },
      std::move(answer));
}

void retry_sweep(Coordinator& coordinator, const std::string& sweep, const std::string& row,
                 const storage::Retry& which, Coordinator::Answer<std::uint32_t> answer) {
  change_and_tell<std::uint32_t>(
      coordinator, sweep, "trials are requeued",
      [sweep, row, which](storage::Database& db, Time now) { return requeue(db, sweep, row, which, now); },
      std::move(answer));
}

}  // namespace abl::scheduler
