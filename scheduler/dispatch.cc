// SPDX-License-Identifier: Apache-2.0
#include "scheduler/dispatch.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scheduler/renewal.h"
#include "storage/due_versions.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"
#include "storage/weights_store.h"

namespace abl::scheduler {
namespace {

using storage::TrialRecord;
using storage::TrialStore;

/// The weights of each queued trial that needs any: name -> SHA-256, empty where any will do.
using Weights = std::map<storage::TrialId, std::map<std::string, std::string>>;

std::vector<Wanted> weights_of(const Weights& weights, storage::TrialId trial) {
  std::vector<Wanted> wanted;
  if (const auto found = weights.find(trial); found != weights.end())
    for (const auto& [name, sha256] : found->second) wanted.push_back({name, sha256});
  return wanted;
}

Demand demand_of(const TrialStore& trials, const TrialRecord& trial, const Weights& weights) {
  const bool command = !trial.command_json.empty();
  Demand demand{.trial = trial.id,
                .gpus = trial.gpus,
                .data = trial.data,
                .weights = weights_of(weights, trial.id),
                .command = command};
  if (!command) demand.result_version = trial.identity.result_version;
  if (trial.attempt > 0)
    if (const auto checkpoints = trials.checkpoints_of(trial.id); !checkpoints.empty())
      demand.home = checkpoints.front().host;
  return demand;
}

ablate::v1::Assign assignment(const TrialStore& trials, const TrialRecord& trial, const Demand& demand,
                              const storage::Lease& lease, const std::vector<std::uint32_t>& slots,
                              const LeasePolicy& policy) {
  ablate::v1::Assign assign;
  assign.set_run(lease.run);
  assign.set_trial(trial.id);
  assign.set_attempt(static_cast<std::uint32_t>(lease.attempt));
  assign.mutable_slots()->Add(slots.begin(), slots.end());
  assign.set_config_json(trial.config);
  if (!trial.command_json.empty()) {
    for (const auto& argument : nlohmann::json::parse(trial.command_json))
      assign.add_argv(argument.get<std::string>());
    assign.set_folder(nlohmann::json::parse(trial.config).value("folder", ""));
  }
  assign.set_data(trial.data);
  if (!trial.data.empty()) assign.set_data_fingerprint(trials.fingerprint(trial.data).value_or(""));
  for (const Wanted& wanted : demand.weights) {
    assign.add_weights(wanted.name);
    if (!wanted.digest.empty()) (*assign.mutable_weights_sha256())[wanted.name] = wanted.digest;
  }
  for (const storage::CheckpointRecord& stored : trials.checkpoints_of(trial.id)) {
    ablate::v1::Checkpoint& checkpoint = *assign.add_checkpoints();
    checkpoint.set_run(stored.run);
    checkpoint.set_step(stored.step);
    checkpoint.set_host(stored.host);
    checkpoint.set_path(stored.path);
    checkpoint.set_sha256(stored.sha256);
  }
  assign.set_seed(trial.seed);
  assign.set_token(lease.token);
  assign.set_grace_ms(static_cast<std::uint32_t>(policy.stop_grace.count()));
  return assign;
}

bool any_free_slot(const std::vector<WorkerState>& workers) {
  return std::any_of(workers.begin(), workers.end(), [](const WorkerState& worker) {
    return !worker.draining && worker.trouble.empty() &&
           std::any_of(worker.slots.begin(), worker.slots.end(),
                       [](const SlotState& slot) { return !slot.busy; });
  });
}

/// The front of the queue: enough trials to fill the slots, or all when those in front cannot be placed.
constexpr int kFirstLook = 64;

}  // namespace

Dispatch dispatch(storage::Database& db, std::vector<WorkerState> workers,
                  const std::map<storage::TrialId, std::string>& known, const LeasePolicy& policy,
                  Moment now) {
  storage::DueVersions{db}.renew_queued(renewed);
  TrialStore trials{db};
  const Weights weights = any_free_slot(workers) ? storage::WeightsStore{db}.queued() : Weights{};
  Dispatch result;
  bool reasons_changed = false;
  std::map<storage::TrialId, Demand> demands;  // of the trials looked at and not placed
  for (int limit = kFirstLook; any_free_slot(workers); limit *= 8) {
    const std::vector<TrialRecord> queued = trials.queued(now.steady, limit);
    for (const TrialRecord& trial : queued) {
      if (demands.contains(trial.id)) continue;
      const Demand demand = demand_of(trials, trial, weights);
      const auto placement = place(demand, workers);
      if (!placement) {
        demands.emplace(trial.id, demand);
        continue;
      }
      const auto& worker = *std::find_if(workers.begin(), workers.end(), [&](const WorkerState& state) {
        return state.session == placement->session;
      });
      const auto lease = trials.lease(trial.id, worker.name, worker.host, now.wall,
                                      policy.expires(now.steady), placement->slots);
      if (!lease) continue;
      result.assignments.push_back(
          {placement->session, assignment(trials, trial, demand, *lease, placement->slots, policy)});
    }
    if (queued.size() < static_cast<std::size_t>(limit)) break;
  }

  for (const TrialStore::Waiting& waiting : trials.waiting()) {
    std::string reason;
    if (waiting.paused) {
      reason = "sweep is paused";
    } else if (waiting.not_before > now.steady) {
      reason = retry_reason(waiting.not_before - now.steady);
    } else {
      const auto demand = demands.find(waiting.trial);
      reason = why_waiting(demand != demands.end() ? demand->second
                                                   : Demand{.trial = waiting.trial,
                                                            .gpus = waiting.gpus,
                                                            .data = waiting.data,
                                                            .weights = weights_of(weights, waiting.trial),
                                                            .command = waiting.command},
                           workers);
    }
    const auto before = known.find(waiting.trial);
    if (before == known.end() || before->second != reason) {
      trials.set_waiting(waiting.trial, reason);
      reasons_changed = true;
    }
    result.reasons.emplace(waiting.trial, std::move(reason));
  }
  if (reasons_changed || !result.assignments.empty())
    for (const storage::SweepRecord& sweep : storage::SweepStore{db}.list())
      if (sweep.trials.open() > 0) result.sweeps.push_back(sweep.name);
  return result;
}

}  // namespace abl::scheduler
