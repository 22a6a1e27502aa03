// SPDX-License-Identifier: Apache-2.0
#include "scheduler/sweep_control.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "scheduler/renewal.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"

namespace abl::scheduler {
namespace {

using storage::SweepState;

storage::SweepRecord get_not_cancelled(storage::Database& db, const std::string& name, const char* wish) {
  const storage::SweepRecord sweep = storage::SweepStore{db}.get(name);
  if (sweep.state == SweepState::kCancelled)
    throw Error{
        Code::kFailedPrecondition,
        fmt::format("sweep {0} is cancelled and cannot be {1}: `ablate retry {0}` queues its trials again",
                    name, wish)};
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
