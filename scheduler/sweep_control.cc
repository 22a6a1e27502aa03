// SPDX-License-Identifier: Apache-2.0
#include "scheduler/sweep_control.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

#include "base/sha256.h"
#include "config/trial_config.h"
#include "scheduler/renewal.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"

namespace abl::scheduler {
namespace {

std::string kind_text(sweeps::Column::Kind kind) {
  switch (kind) {
    case sweeps::Column::Kind::kMetric:
      return "metric";
    case sweeps::Column::Kind::kCount:
      return "count";
    case sweeps::Column::Kind::kSetting:
      return "setting";
  }
  return {};
}

storage::NewSweep sweep_record(const sweeps::SweepSpec& spec, int priority) {
  storage::NewSweep record{.name = spec.name,
                           .file = spec.file,
                           .text = spec.text,
                           .canonical = spec.canonical,
                           .canonical_hash = sha256_hex(spec.canonical),
                           .baseline = spec.table.baseline,
                           .paper_heading = spec.table.paper_heading,
                           .seeds = spec.seeds,
                           .priority = priority};
  for (const sweeps::Row& row : spec.rows)
    record.rows.push_back({.id = row.id,
                           .label = row.label,
                           .set_json = nlohmann::json(row.set).dump(),
                           .config_hash = row.config_hash,
                           .model = row.model,
                           .paper = row.paper});
  for (const sweeps::Column& column : spec.table.columns)
    record.columns.push_back({.name = column.name,
                              .heading = column.heading,
                              .kind = kind_text(column.kind),
                              .source = column.source,
                              .take = column.take,
                              .unit = column.unit,
                              .better = column.better,
                              .digits = column.digits,
                              .unit_fits = column.unit_fits});
  return record;
}

std::vector<storage::NewTrial> trial_records(const sweeps::SweepSpec& spec) {
  const std::string command = spec.command ? nlohmann::json(spec.command->argv).dump() : std::string{};
  std::vector<storage::NewTrial> records;
  for (sweeps::TrialSpec& trial : sweeps::expand(spec))
    records.push_back({.row = trial.row,
                       .seed_index = trial.seed_index,
                       .seed = trial.seed,
                       .config = std::move(trial.config),
                       .config_hash = std::move(trial.config_hash),
                       .result_version = trial.result_version,
                       .data = spec.data,
                       .command_json = command,
                       .reusable = !spec.command || spec.command->reuse,
                       .gpus = spec.gpus,
                       .max_retries = spec.max_retries,
                       .weights = spec.rows[static_cast<std::size_t>(trial.row)].weights});
  return records;
}

}  // namespace

Submission store_sweep(storage::Database& db, const sweeps::SweepSpec& spec, std::optional<int> priority,
                       Time now) {
  storage::SweepStore store{db};
  if (const auto stored = store.find(spec.name)) {
    if (stored->canonical_hash == sha256_hex(spec.canonical)) {
      if (priority) store.set_priority(stored->id, *priority);
      return {.created = false};
    }
    std::string message = fmt::format(
        "sweep {} already exists with different content: submit this one under another name", spec.name);
    for (const std::string& line : sweeps::difference(spec.canonical, stored->canonical))
      message += "\n" + line;
    throw Error{Code::kAlreadyExists, message};
  }
  const storage::Submitted submitted =
      store.insert(sweep_record(spec, priority.value_or(0)), trial_records(spec), now);
  storage::TrialStore{db}.take_stops_back(submitted.sweep);  // of trials that another sweep gave up
  return {.created = true, .new_trials = submitted.new_trials, .shared_trials = submitted.shared_trials};
}

namespace {

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

}  // namespace

std::vector<storage::RunId> cancel_sweep(storage::Database& db, const std::string& name, Time now) {
  storage::SweepStore store{db};
  const storage::SweepRecord sweep = store.get(name);
  if (sweep.state == SweepState::kCancelled || sweep.trials.open() + sweep.trials.held == 0) return {};
  std::vector<storage::RunId> unwanted = store.withdraw(sweep.id, now);
  storage::TrialStore{db}.ask_to_stop(unwanted, kCancelled);
  return unwanted;
}

std::vector<storage::RunId> pause_sweep(storage::Database& db, const std::string& name, bool stop_running,
                                        Time now) {
  storage::SweepStore store{db};
  const storage::SweepRecord sweep = get_not_cancelled(db, name, "paused");
  store.set_state(sweep.id, SweepState::kPaused, now);
  if (!stop_running) return {};
  std::vector<storage::RunId> stopped = store.own_runs(sweep.id);
  storage::TrialStore{db}.ask_to_stop(stopped, kPaused);
  return stopped;
}

void resume_sweep(storage::Database& db, const std::string& name, Time now) {
  const storage::SweepRecord sweep = get_not_cancelled(db, name, "resumed");
  storage::SweepStore{db}.set_state(sweep.id, SweepState::kActive, now);
  storage::TrialStore{db}.take_stops_back(sweep.id);
}

std::uint32_t retry_sweep(storage::Database& db, const std::string& name, const std::string& row,
                          const storage::Retry& which, Time now) {
  storage::SweepStore store{db};
  const storage::SweepRecord record = store.get(name);
  const storage::SweepId sweep = record.id;
  const std::uint32_t queued = store.retry(sweep, row, now, renewed, which);
  if (queued == 0 && !which.ended && record.state == SweepState::kCancelled)
    throw Error{Code::kFailedPrecondition,
                fmt::format("sweep {0} is cancelled and has no trials {1}; 'ablate retry {0}' requeues its "
                            "cancelled trials",
                            name,
                            which.held       ? "that are held"
                            : which.unfilled ? "with missing metrics"
                                             : "with results from before a correction")};
  storage::TrialStore{db}.take_stops_back(sweep);
  return queued;
}

std::vector<std::string> sweeps_of(storage::Database& db, storage::TrialId trial) {
  std::set<std::string> names;
  for (const auto& position : storage::SweepStore{db}.positions(trial)) names.insert(position.sweep);
  return {names.begin(), names.end()};
}

}  // namespace abl::scheduler
