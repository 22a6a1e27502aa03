// SPDX-License-Identifier: Apache-2.0
#include "scheduler/dispatch.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "scheduler/renewal.h"
#include "storage/chain_store.h"
#include "storage/data_pins.h"
#include "storage/depot_store.h"
#include "storage/due_versions.h"
#include "storage/probe_store.h"
#include "storage/queue_store.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"
#include "storage/worker_store.h"

namespace abl::scheduler {
namespace {

using storage::TrialRecord;
using storage::TrialStore;

/// What every worker of a run is told.
ablate::v1::Assign common_assignment(const TrialStore& trials, const TrialRecord& trial,
                                     const std::vector<Wanted>& weights, const storage::Lease& lease,
                                     const std::vector<std::uint32_t>& slots, const LeasePolicy& policy) {
  ablate::v1::Assign assign;
  assign.set_run(lease.run);
  assign.set_trial(trial.id);
  assign.set_attempt(static_cast<std::uint32_t>(lease.attempt));
  assign.mutable_slots()->Add(slots.begin(), slots.end());
  assign.set_config_json(trial.config);
  assign.set_data(trial.data);
  if (!trial.data.empty()) assign.set_data_fingerprint(trials.fingerprint(trial.data).value_or(""));
  for (const Wanted& wanted : weights) {
    assign.add_weights(wanted.name);
    if (!wanted.digest.empty()) (*assign.mutable_weights_sha256())[wanted.name] = wanted.digest;
  }
  assign.set_seed(trial.seed);
  assign.set_log_limit_bytes(trial.log_limit);
  assign.set_token(lease.token);
  assign.set_grace_ms(static_cast<std::uint32_t>(policy.stop_grace.count()));
  return assign;
}

ablate::v1::Assign assignment(const TrialStore& trials, const TrialRecord& trial, const Demand& demand,
                              const storage::Lease& lease, const std::vector<std::uint32_t>& slots,
                              const std::vector<storage::SourceFile>& sources, bool others_wait,
                              const LeasePolicy& policy) {
  ablate::v1::Assign assign = common_assignment(trials, trial, demand.weights, lease, slots, policy);
  if (!trial.command_json.empty()) {
    for (const auto& argument : nlohmann::json::parse(trial.command_json))
      assign.add_argv(argument.get<std::string>());
    assign.set_folder(nlohmann::json::parse(trial.config).value("folder", ""));
  }
  for (const storage::CheckpointRecord& stored : trials.checkpoints_of(trial.id)) {
    ablate::v1::Checkpoint& checkpoint = *assign.add_checkpoints();
    checkpoint.set_run(stored.run);
    checkpoint.set_step(stored.step);
    checkpoint.set_host(stored.host);
    checkpoint.set_path(stored.path);
    checkpoint.set_sha256(stored.sha256);
  }
  assign.set_time_limit_s(static_cast<std::uint32_t>(trial.time_limit.count()));
  assign.set_stall_limit_s(static_cast<std::uint32_t>(trial.stall_limit.count()));
  assign.set_nan_fails(trial.nan_fails);
  if (!trial.retry_on.empty())
    for (std::string& pattern : protocol::log_patterns(protocol::retry_rules(trial.retry_on)))
      *assign.add_log_patterns() = std::move(pattern);
  for (const storage::SourceFile& file : sources) {
    ablate::v1::SourceWeights& source = *assign.add_sources();
    source.set_name(file.name);
    source.set_path(file.checkpoint.path);
    source.set_sha256(file.checkpoint.sha256);
    source.set_host(file.checkpoint.host);
    source.set_what(file.what);
  }
  assign.set_weights_wanted(others_wait);
  return assign;
}

void add_probes(const std::vector<protocol::ProbeRequest>& probes, ablate::v1::Assign& assign) {
  for (const auto& probe : probes) assign.add_probes(protocol::to_text(probe));
}

/// A run's workers, as each of them is told: which ranks are its own.
struct Ranks {
  std::uint32_t nodes = 1, all = 0;
  std::vector<std::uint32_t> first;  ///< by node
};

Ranks ranks_of(std::size_t leader_slots, const std::vector<storage::RunPart>& parts) {
  Ranks ranks{.nodes = static_cast<std::uint32_t>(parts.size()) + 1,
              .all = static_cast<std::uint32_t>(leader_slots),
              .first = {0}};
  for (const storage::RunPart& part : parts) {
    ranks.first.push_back(ranks.all);
    ranks.all += static_cast<std::uint32_t>(part.slots.size());
  }
  return ranks;
}

void set_gang(ablate::v1::Assign& assign, const Ranks& ranks, std::size_t node,
              const std::string& rendezvous) {
  ablate::v1::Gang& gang = *assign.mutable_gang();
  gang.set_node(static_cast<std::uint32_t>(node));
  gang.set_nodes(ranks.nodes);
  gang.set_first_rank(ranks.first[node]);
  gang.set_ranks(ranks.all);
  gang.set_rendezvous(rendezvous);
}

}  // namespace

std::vector<std::pair<std::string, ablate::v1::Assign>> part_assignments(storage::Database& db,
                                                                         storage::RunId run,
                                                                         const LeasePolicy& policy) {
  std::vector<std::pair<std::string, ablate::v1::Assign>> assignments;
  const storage::PartStore stored{db};
  const std::vector<storage::RunPart> parts = stored.of(run);
  const std::string rendezvous = parts.empty() ? "" : stored.rendezvous(run);
  const TrialStore trials{db};
  if (rendezvous.empty() || !trials.under_way(run)) return assignments;
  const storage::RunRecord record = trials.run(run);
  const TrialRecord trial = trials.get(record.trial);
  const storage::QueueStore queue{db};
  std::vector<Wanted> weights;
  if (const auto open = queue.open(trial.id)) {
    const auto pins = queue.pins();
    for (const auto& [name, sha256] : queue.demand(open->shape).weights) {
      const auto pin = pins.find(name);
      weights.push_back({name, !sha256.empty() || pin == pins.end() ? sha256 : pin->second});
    }
  }
  const storage::Lease lease{.run = run, .trial = trial.id, .attempt = record.attempt, .token = record.token};
  const auto all = static_cast<std::size_t>(stored.slots_of(run));
  std::size_t own = all;
  for (const storage::RunPart& part : parts) own -= part.slots.size();
  const Ranks ranks = ranks_of(own, parts);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto assign = common_assignment(trials, trial, weights, lease, parts[i].slots, policy);
    set_gang(assign, ranks, i + 1, rendezvous);
    assignments.emplace_back(parts[i].worker, std::move(assign));
  }
  return assignments;
}

/// At once: others follow when these have given way.
constexpr std::size_t kMostPreempted = 64;

Picks pick(WorkQueue& queue, Fleet& fleet, const LeasePolicy& policy, Time now) {
  Picks result;
  const bool some_end = fleet.note_time(now);
  unreserve(
      fleet.workers());  // until now: whoever asks why a trial waits is told of what is kept for another
  std::set<LaneId> blocked;
  std::map<LaneId, WorkQueue::Limit> limits;  // of lanes for which workers have slots, and little time
  bool reserved = false,
       kept = false;  // for the first trial that needs it; all of them would keep every slot free
  while (const auto next = queue.next(blocked, limits)) {
    Demand demand = queue.demand(next->trial);
    demand.takes = next->typical.value_or(Milliseconds{0});
    allow_where_it_failed(demand, fleet.workers());
    const bool quick = next->typical && *next->typical <= policy.quick;
    auto placement = place(demand, fleet.workers());
    if (placement && !quick) fleet.mark_slow(*placement);
    if (!placement) placement = place_beside(demand, fleet.workers(), policy.pack_at_most);
    if (!placement && quick && !demand.packs)
      placement = place_ahead(demand, fleet.workers(), policy.depth(*next->typical));
    if (!placement) {
      const auto left = some_end ? time_left_for(demand, fleet.workers()) : std::nullopt;
      if (!left)
        blocked.insert(next->lane);
      else if (next->typical)
        limits[next->lane].longest = std::min(*left, *next->typical - Milliseconds{1});
      else
        limits[next->lane].unknown = false;
      const bool awaited = await(demand, fleet.workers());
      if (awaited && !result.waits)
        result.waits = {demand, next->priority, queue.preempting(next->lane, next->priority, kMostPreempted)};
      if (!reserved && takes_several(demand)) reserved = reserve(demand, fleet.workers());
      if (!kept && !takes_several(demand)) kept = keep_from_sharing(demand, fleet.workers());
      continue;
    }
    queue.take(next->trial);
    const auto session = fleet.session(placement->session);
    const auto others = placement->beside ? fleet.executing(placement->session, placement->slots.front())
                                          : std::vector<storage::RunId>{};
    std::vector<storage::RunPart> parts;
    for (const Placement::Part& part : placement->parts) {
      const auto other = fleet.session(part.session);
      parts.push_back({.node = static_cast<int>(parts.size()) + 1,
                       .worker = other->hello.name(),
                       .host = other->hello.host(),
                       .slots = part.slots});
    }
    result.picks.push_back({.placement = *std::move(placement),
                            .demand = std::move(demand),
                            .worker = session->hello.name(),
                            .host = session->hello.host(),
                            .parts = std::move(parts),
                            .priority = next->priority,
                            .quick = quick,
                            .beside = others});
  }
  return result;
}

Leased lease(storage::Database& db, const std::vector<Pick>& picks, const LeasePolicy& policy, Moment now) {
  Leased result;
  result.renewed = storage::DueVersions{db}.renew_queued(renewed);
  TrialStore trials{db};
  const storage::SweepStore sweeps{db};
  const storage::WorkerStore workers{db};
  std::map<std::pair<std::string, std::uint32_t>, std::set<storage::RunId>> together;  // by worker and slot
  for (const Pick& pick : picks) {
    auto& assigned = result.assignments.emplace_back();
    const TrialRecord trial = trials.get(pick.demand.trial);
    if (!pick.demand.command && trial.identity.result_version != pick.demand.result_version) continue;
    if (workers.drained(pick.worker)) continue;  // since it was picked
    if (std::ranges::any_of(pick.parts,
                            [&](const auto& part) { return workers.drained(part.worker).has_value(); }))
      continue;
    if (!trial.data.empty() && !storage::DataPins{db}.follow(trial.id)) {
      result.renewed = true;
      continue;
    }
    std::vector<storage::SourceFile> sources;
    if (pick.demand.sources) {
      storage::ChainStore chains{db};
      sources = chains.files(trial.id);
      if (std::ranges::any_of(sources,
                              [](const auto& file) { return file.state != storage::TrialState::kCompleted; }))
        continue;  // since it was picked
      if (chains.hold_without_weights(trial.id, sources)) continue;
    }
    const auto lease = trials.lease(trial.id, pick.worker, pick.host, now.wall, policy.expires(now.steady),
                                    pick.placement.slots);
    if (!lease) continue;
    if (!sources.empty()) storage::ChainStore{db}.note(lease->run, sources);
    if (pick.demand.packs) {
      std::set<storage::RunId>& runs = together[{pick.worker, pick.placement.slots.front()}];
      runs.insert(pick.beside.begin(), pick.beside.end());
      runs.insert(lease->run);
      if (runs.size() > 1)
        trials.note_packed({runs.begin(), runs.end()}, static_cast<std::uint32_t>(runs.size() - 1));
    }
    assigned = {.assign = assignment(trials, trial, pick.demand, *lease, pick.placement.slots, sources,
                                     storage::DepotStore{db}.others_wait(trial.id), policy),
                .sweeps = sweeps.names_of(trial.id)};
    assigned->assign.set_packed(pick.placement.beside);
    if (!pick.demand.command) add_probes(storage::ProbeStore{db}.wanted(trial.id), assigned->assign);
    if (pick.parts.empty()) continue;
    set_gang(assigned->assign, ranks_of(pick.placement.slots.size(), pick.parts), 0, {});
    for (storage::RunPart part : pick.parts) {
      part.run = lease->run;
      storage::PartStore{db}.add(part);
    }
  }
  return result;
}

}  // namespace abl::scheduler
