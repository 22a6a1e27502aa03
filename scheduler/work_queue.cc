// SPDX-License-Identifier: Apache-2.0
#include "scheduler/work_queue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace abl::scheduler {
using storage::OpenTrial;
using storage::ShapeId;
using storage::SweepId;
using storage::TrialId;
namespace {

/// The sweeps that claim a trial, each once.
std::vector<SweepId> sweeps_of(const OpenTrial& trial) {
  std::vector<SweepId> ids;
  for (const OpenTrial::Claim& claim : trial.claims)
    if (ids.empty() || ids.back() != claim.sweep) ids.push_back(claim.sweep);
  return ids;
}

/// That a run of a trial takes, as the shares of owners and sweeps are counted.
int slots_of(const Demand& demand) { return std::max({1, demand.gpus, demand.split.most_nodes}); }

}  // namespace

// --- sweeps, their owners, and their turns ---

void WorkQueue::put_sweep(const storage::OpenSweep& stored) {
  Sweep& sweep = sweeps_[stored.id];
  if (sweep.stored == stored) return;
  change_owner(sweep.stored.owner, [&](Owner& owner) { owner.slots -= sweep.slots; });
  const bool is_resumed = stored.active && !sweep.stored.active;
  change(sweep, [&] {
    sweep.stored = stored;
    sweep.canaries = canaries_;
    if (is_resumed) sweep.since = now_;
  });
  change_owner(stored.owner, [&](Owner& owner) { owner.slots += sweep.slots; });
  if (stored.canary)
    canary_sweeps_.insert(stored.id);
  else
    canary_sweeps_.erase(stored.id);
}

void WorkQueue::erase_sweep(SweepId id) {
  const auto found = sweeps_.find(id);
  if (found == sweeps_.end() || found->second.standing > 0 || found->second.running > 0) return;
  change_owner(found->second.stored.owner, [&](Owner& owner) { owner.slots -= found->second.slots; });
  canary_sweeps_.erase(id);
  sweeps_.erase(found);
}

void WorkQueue::set_canaries(std::uint32_t trials) {
  if (canaries_ == trials) return;
  canaries_ = trials;
  for (const SweepId id : canary_sweeps_) {
    Sweep& sweep = sweeps_.at(id);
    change(sweep, [&] { sweep.canaries = trials; });
  }
}

std::vector<SweepId> WorkQueue::claimants(TrialId trial) const {
  const auto found = trials_.find(trial);
  return found == trials_.end() ? std::vector<SweepId>{} : sweeps_of(found->second.stored);
}

bool WorkQueue::is_tried(TrialId trial) const {
  return tries_some() &&
         std::ranges::any_of(claimants(trial), [&](SweepId sweep) { return canary_sweeps_.contains(sweep); });
}

/// So many more of its claims stand in lanes.
void WorkQueue::count_waiting(const Sweep& sweep, std::ptrdiff_t claims) {
  if (!sweep.may_run()) return;
  std::size_t& waiting = waiting_[sweep.stored.priority];
  waiting += static_cast<std::size_t>(claims);
  if (waiting == 0) waiting_.erase(sweep.stored.priority);
}

void WorkQueue::enter_lane(Sweep& sweep, LaneId lane) {
  if (!sweep.may_run()) return;
  count_waiting(sweep, std::ssize(sweep.ready.at(lane)));
  if (sweep.standing++ == 0) sweeps_waiting_.emplace(sweep.since, sweep.stored.id);
  Turns& turns = levels_[sweep.stored.priority][lane];
  Owner& owner = owners_[sweep.stored.owner];
  turns.sweeps[sweep.stored.owner].emplace(sweep.share(), sweep.stored.id);
  turns.owners.emplace(owner.share(), sweep.stored.owner);
  ++owner.turns[{sweep.stored.priority, lane}];
}

void WorkQueue::leave_lane(Sweep& sweep, LaneId lane) {
  if (!sweep.may_run()) return;
  count_waiting(sweep, -std::ssize(sweep.ready.at(lane)));
  if (--sweep.standing == 0) sweeps_waiting_.erase({sweep.since, sweep.stored.id});
  const auto level = levels_.find(sweep.stored.priority);
  const auto turns = level->second.find(lane);
  Owner& owner = owners_.at(sweep.stored.owner);
  const auto his = turns->second.sweeps.find(sweep.stored.owner);
  his->second.erase({sweep.share(), sweep.stored.id});
  if (const auto standing = owner.turns.find({sweep.stored.priority, lane}); --standing->second == 0) {
    owner.turns.erase(standing);
    turns->second.sweeps.erase(his);
    turns->second.owners.erase({owner.share(), sweep.stored.owner});
  }
  if (turns->second.owners.empty()) level->second.erase(turns);
  if (level->second.empty()) levels_.erase(level);
}

/// `change` may change what decides whether a sweep may run, and where it stands among its owner's.
template <class Change>
void WorkQueue::change(Sweep& sweep, Change change) {
  for (const auto& [lane, places] : sweep.ready) leave_lane(sweep, lane);
  change();
  for (const auto& [lane, places] : sweep.ready) enter_lane(sweep, lane);
}

/// `change` may change where an owner stands among the others.
template <class Change>
void WorkQueue::change_owner(const std::string& name, Change change) {
  Owner& owner = owners_[name];
  const Share before = owner.share();
  change(owner);
  for (const auto& [stand, sweeps] : owner.turns) {
    auto& owners = levels_.at(stand.first).at(stand.second).owners;
    owners.erase({before, name});
    owners.emplace(owner.share(), name);
  }
}

/// Whether it is among those that its sweeps have under way.
void WorkQueue::count(Trial& trial, bool counted) {
  if (trial.counted == counted) return;
  trial.counted = counted;
  counted_ = counted ? counted_ + 1 : counted_ - 1;
  const int sign = counted ? 1 : -1;
  const int slots = sign * slots_of(shapes_.at(trial.stored.shape).demand);
  for (const SweepId id : sweeps_of(trial.stored)) {
    Sweep& sweep = sweeps_[id];
    change(sweep, [&] {
      sweep.slots += slots;
      sweep.running += static_cast<std::uint32_t>(sign);
    });
    change_owner(sweep.stored.owner, [&](Owner& owner) { owner.slots += slots; });
  }
}

// --- lanes ---

LaneId WorkQueue::lane_of(const Trial& trial) {
  std::set<std::uint64_t> refusing;
  for (const auto& [session, until] : trial.refusals) refusing.insert(session);
  auto failed_on = trial.elsewhere ? trial.stored.failed_on : std::vector<std::string>{};
  const bool unmeasured = !trial.stored.pack.empty() && !memories_.contains(trial.stored.pack);
  const auto [found, fresh] =
      lane_ids_.try_emplace({trial.stored.shape, unmeasured, refusing, failed_on}, next_lane_);
  if (fresh)
    lanes_.emplace(next_lane_++,
                   Lane{trial.stored.shape, unmeasured, std::move(refusing), std::move(failed_on)});
  return found->second;
}

void WorkQueue::drop_lane(LaneId id) {
  const auto lane = lanes_.find(id);
  if (--lane->second.trials > 0) return;
  lane_ids_.erase(
      {lane->second.shape, lane->second.unmeasured, lane->second.refusing, lane->second.failed_on});
  lanes_.erase(lane);
}

// --- trials ---

/// Among those that can be run now.
void WorkQueue::enter(Trial& trial) {
  trial.lane = lane_of(trial);
  ++lanes_.at(trial.lane).trials;
  ++shapes_.at(trial.stored.shape).waiting;
  for (const OpenTrial::Claim& claim : trial.stored.claims) {
    Sweep& sweep = sweeps_[claim.sweep];
    auto& places = sweep.ready[trial.lane];
    if (sweep.standing == 0 && places.empty()) sweep.since = now_;
    if (!places.insert({claim.turn, claim.seed_index, claim.row, trial.stored.id}).second) continue;
    if (places.size() == 1)
      enter_lane(sweep, trial.lane);
    else
      count_waiting(sweep, 1);
  }
  if (!trial.stored.pack.empty()) packs_[trial.stored.pack].insert(trial.stored.id);
  trial.ready = true;
  ++ready_;
}

void WorkQueue::leave(Trial& trial) {
  if (!std::exchange(trial.ready, false)) return;
  --ready_;
  if (const auto pack = packs_.find(trial.stored.pack); pack != packs_.end()) {
    pack->second.erase(trial.stored.id);
    if (pack->second.empty()) packs_.erase(pack);
  }
  for (const OpenTrial::Claim& claim : trial.stored.claims) {
    Sweep& sweep = sweeps_[claim.sweep];
    const auto places = sweep.ready.find(trial.lane);
    if (places->second.erase({claim.turn, claim.seed_index, claim.row, trial.stored.id}) > 0)
      count_waiting(sweep, -1);
    if (!places->second.empty()) continue;
    leave_lane(sweep, trial.lane);
    sweep.ready.erase(places);
  }
  --shapes_.at(trial.stored.shape).waiting;
  drop_lane(trial.lane);
}

/// Where what is known of it says.
void WorkQueue::place(Trial& trial, Time now) {
  now_ = now;
  count(trial, trial.stored.under_way || trial.taken);
  if (trial.stored.under_way || trial.taken) return;
  if (trial.stored.awaits) return;  // in no lane, until a commit that completes its source touches it
  const bool waits = trial.stored.not_before > now;
  trial.wakes = waits ? trial.stored.not_before : Time{};
  const Time anywhere = trial.stored.not_before + kElsewhereFirst;
  trial.elsewhere = !trial.stored.failed_on.empty() && anywhere > now;
  if (trial.elsewhere && !waits) trial.wakes = anywhere;
  for (const auto& [session, until] : trial.refusals)
    if (trial.wakes == Time{} || until < trial.wakes) trial.wakes = until;
  if (trial.wakes != Time{}) timers_.emplace(trial.wakes, trial.stored.id);
  if (!waits) enter(trial);
}

void WorkQueue::unplace(Trial& trial) {
  leave(trial);
  count(trial, false);
  if (trial.wakes != Time{}) timers_.erase({std::exchange(trial.wakes, Time{}), trial.stored.id});
}

void WorkQueue::put(OpenTrial stored, Time now) {
  const auto [found, fresh] = trials_.try_emplace(stored.id);
  Trial& trial = found->second;
  if (!fresh) unplace(trial);
  trial.stored = std::move(stored);
  trial.taken = false;
  place(trial, now);
}

void WorkQueue::erase(TrialId id) {
  const auto found = trials_.find(id);
  if (found == trials_.end()) return;
  unplace(found->second);
  trials_.erase(found);
}

void WorkQueue::clear() {
  const std::uint32_t canaries = canaries_;
  *this = {};
  canaries_ = canaries;
}

void WorkQueue::put_shape(ShapeId shape, const Demand& demand) { shapes_[shape].demand = demand; }

void WorkQueue::put_memory(const std::string& pack, double bytes) {
  const bool was_known = memories_.contains(pack), is_known = bytes > 0;
  if (is_known)
    memories_[pack] = bytes;
  else
    memories_.erase(pack);
  const auto ready = packs_.find(pack);
  if (was_known == is_known || ready == packs_.end()) return;
  for (const TrialId id : std::set{ready->second}) {  // they stand in another lane now
    leave(trials_.at(id));
    enter(trials_.at(id));
  }
}

std::optional<WorkQueue::Next> WorkQueue::next(const std::set<LaneId>& blocked,
                                               const std::map<LaneId, Limit>& limits) const {
  using Turn = std::pair<Share, SweepId>;
  // the first of a lane: of the owners in their order, of the sweeps of each in theirs
  const auto first =
      [&](LaneId lane, const Turns& turns) -> std::optional<std::pair<std::pair<Share, std::string>, Turn>> {
    const auto limit = limits.find(lane);
    for (const auto& owner : turns.owners)
      for (const Turn& turn : turns.sweeps.at(owner.second)) {
        const auto& typical = sweeps_.at(turn.second).typical;
        if (limit == limits.end() || (typical ? *typical <= limit->second.longest : limit->second.unknown))
          return std::pair{owner, turn};
      }
    return std::nullopt;
  };
  for (const auto& [priority, lanes] : levels_) {
    std::optional<Next> best;
    std::tuple<std::pair<Share, std::string>, std::pair<Share, SweepId>, Place> best_turn;
    for (const auto& [lane, turns] : lanes) {
      if (blocked.contains(lane)) continue;
      const auto found = first(lane, turns);
      if (!found) continue;
      const auto& [owner, turn] = *found;
      const Sweep& sweep = sweeps_.at(turn.second);
      const Place& place = *sweep.ready.at(lane).begin();
      if (const std::tuple here{owner, turn, place}; !best || here < best_turn) {
        best_turn = here;
        best = {place.trial, lane, priority, sweep.typical};
      }
    }
    if (best) return best;
  }
  return std::nullopt;
}

std::size_t WorkQueue::preempting(LaneId lane, int priority, std::size_t most) const {
  std::set<TrialId> trials;  // sweeps may share one
  const auto level = levels_.find(priority);
  if (level == levels_.end() || !level->second.contains(lane)) return 0;
  for (const auto& [owner, sweeps] : level->second.at(lane).sweeps)
    for (const auto& [share, id] : sweeps) {
      const Sweep& sweep = sweeps_.at(id);
      if (!sweep.stored.preempts) continue;
      std::size_t left = std::min<std::size_t>(most, sweep.most() - sweep.running);
      for (const Place& place : sweep.ready.at(lane)) {
        if (left-- == 0) break;
        trials.insert(place.trial);
        if (trials.size() >= most) return most;
      }
    }
  return trials.size();
}

Demand WorkQueue::demand(TrialId id) const {
  const Trial& trial = trials_.at(id);
  Demand demand = shapes_.at(trial.stored.shape).demand;
  demand.trial = id;
  demand.home = trial.stored.home;
  demand.spread = is_tried(id);  // what one worker says of it may be the worker's fault
  if (const auto memory = memories_.find(trial.stored.pack); memory != memories_.end())
    demand.memory_bytes = memory->second;
  for (const auto& [session, until] : trial.refusals) demand.refused_by.insert(session);
  if (trial.elsewhere) demand.failed_on = trial.stored.failed_on;
  return demand;
}

std::string WorkQueue::why_refused(TrialId id) const {
  const auto found = trials_.find(id);
  return found == trials_.end() ? std::string{} : found->second.why_refused;
}

std::string WorkQueue::why_elsewhere(TrialId id) const {
  const auto found = trials_.find(id);
  if (found == trials_.end() || !found->second.ready) return {};
  if (!found->second.elsewhere) return found->second.why_refused;
  return fmt::format("first tried on another host than {}, where it failed",
                     fmt::join(found->second.stored.failed_on, ", "));
}

void WorkQueue::take(TrialId id) {
  Trial& trial = trials_.at(id);
  unplace(trial);
  trial.taken = true;
  const std::uint64_t served = ++served_;
  for (const SweepId claiming : sweeps_of(trial.stored)) {
    Sweep& sweep = sweeps_[claiming];
    change(sweep, [&] { sweep.served = served, sweep.since = now_; });
    change_owner(sweep.stored.owner, [&](Owner& owner) { owner.served = served; });
  }
  count(trial, true);
}

void WorkQueue::give_back(TrialId id, Time now) {
  const auto found = trials_.find(id);
  if (found == trials_.end() || !found->second.taken) return;
  unplace(found->second);
  found->second.taken = false;
  place(found->second, now);
}

void WorkQueue::refuse(TrialId id, std::uint64_t session, Time now, Time until, const std::string& why) {
  const auto found = trials_.find(id);
  if (found == trials_.end()) return;
  unplace(found->second);
  found->second.refusals[session] = until;
  found->second.why_refused = why;
  place(found->second, now);
}

void WorkQueue::ran(const std::vector<SweepId>& sweeps, Milliseconds time) {
  for (const SweepId sweep : sweeps) {
    auto& typical = sweeps_[sweep].typical;
    typical = typical ? std::max(time, (*typical * 3 + time) / 4) : time;  // one long run is heeded at once
  }
}

void WorkQueue::outlived(const std::vector<SweepId>& sweeps, Milliseconds time) {
  for (const SweepId sweep : sweeps)
    if (auto& typical = sweeps_[sweep].typical; typical ? *typical < time : time >= kTold) typical = time;
}

std::vector<TrialId> WorkQueue::wake(Time now) {
  now_ = now;
  std::vector<TrialId> woken;
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const TrialId id = timers_.begin()->second;
    Trial& trial = trials_.at(id);
    unplace(trial);
    std::erase_if(trial.refusals, [now](const auto& refusal) { return refusal.second <= now; });
    if (trial.refusals.empty()) trial.why_refused.clear();
    place(trial, now);
    woken.push_back(id);
  }
  return woken;
}

WorkQueue::Load WorkQueue::load() const {
  return {.under_way = counted_,
          .ready = ready_,
          .lanes = lanes_.size(),
          .by_priority = waiting_,
          .longest = sweeps_waiting_.empty() ? std::nullopt : std::optional{sweeps_waiting_.begin()->first}};
}

std::vector<std::pair<ShapeId, Demand>> WorkQueue::waiting_shapes() const {
  std::vector<std::pair<ShapeId, Demand>> waiting;
  for (const auto& [id, shape] : shapes_)
    if (shape.waiting > 0) waiting.emplace_back(id, shape.demand);
  return waiting;
}

std::vector<WorkQueue::Waiting> WorkQueue::waiting() const {
  std::map<std::pair<ShapeId, Milliseconds>, std::size_t> trials;
  for (const auto& [priority, lanes] : levels_)
    for (const auto& [lane, turns] : lanes) {
      const ShapeId shape = lanes_.at(lane).shape;
      const bool resumable = !shapes_.at(shape).demand.command;
      for (const auto& [owner, sweeps] : turns.sweeps)
        for (const auto& [share, id] : sweeps) {
          const Sweep& sweep = sweeps_.at(id);
          const Milliseconds takes = resumable ? Milliseconds{0} : sweep.typical.value_or(Milliseconds{0});
          trials[{shape, takes}] +=
              std::min<std::size_t>(sweep.ready.at(lane).size(), sweep.most() - sweep.running);
        }
    }
  std::vector<Waiting> waiting;
  std::map<ShapeId, std::size_t> counted;  // a trial of several sweeps stands in each
  for (const auto& [kind, most] : trials) {
    const Shape& shape = shapes_.at(kind.first);
    const std::size_t count = std::min(most, shape.waiting - counted[kind.first]);
    counted[kind.first] += count;
    if (count > 0) waiting.push_back({shape.demand, count, kind.second});
  }
  return waiting;
}

std::map<ShapeId, Milliseconds> WorkQueue::shortest() const {
  std::map<ShapeId, Milliseconds> shortest;
  for (const auto& [priority, lanes] : levels_)
    for (const auto& [lane, turns] : lanes)
      for (const auto& [owner, sweeps] : turns.sweeps)
        for (const auto& [share, id] : sweeps) {
          const Milliseconds takes = sweeps_.at(id).typical.value_or(Milliseconds{0});
          const auto [known, fresh] = shortest.try_emplace(lanes_.at(lane).shape, takes);
          known->second = std::min(known->second, takes);
        }
  return shortest;
}

std::vector<ShapeId> WorkQueue::shapes() const {
  std::vector<ShapeId> ids;
  for (const auto& [id, shape] : shapes_) ids.push_back(id);
  return ids;
}

std::vector<std::string> WorkQueue::dump() const {
  std::vector<std::string> lines;
  for (const auto& [id, trial] : trials_) {
    std::vector<std::string> claims;
    for (const auto& claim : trial.stored.claims)
      claims.push_back(fmt::format("{}.{}.{}{}", claim.sweep, claim.row, claim.seed_index,
                                   claim.turn > 0 ? fmt::format(" in turn {}", claim.turn) : ""));
    lines.push_back(
        fmt::format("trial {}, shape {}, {}{}, home '{}', failed on '{}', not before {}, claims {}", id,
                    trial.stored.shape, trial.stored.under_way ? "under way" : "queued",
                    trial.stored.awaits ? ", waits for another" : "", trial.stored.home,
                    fmt::join(trial.stored.failed_on, " "),
                    trial.stored.not_before.time_since_epoch().count(), fmt::join(claims, " ")));
  }
  std::map<SweepId, int> slots;  // recounted
  for (const auto& [id, trial] : trials_)
    for (const SweepId sweep : sweeps_of(trial.stored))
      slots[sweep] += trial.counted ? slots_of(shapes_.at(trial.stored.shape).demand) : 0;
  for (const auto& [id, counted] : slots) {
    const Sweep& sweep = sweeps_.at(id);
    lines.push_back(fmt::format(
        "sweep {}, {}{}, priority {}, slots in use {}{}", id, sweep.stored.active ? "active" : "not active",
        sweep.stored.canary ? ", tries some first" : "", sweep.stored.priority, sweep.slots,
        sweep.slots == counted ? "" : fmt::format(" (counted {})", counted)));
  }
  Load counted;  // again
  for (const auto& [id, trial] : trials_) {
    counted.under_way += trial.counted ? 1 : 0;
    counted.ready += trial.ready ? 1 : 0;
    for (const auto& claim : trial.stored.claims)
      if (trial.ready && sweeps_.at(claim.sweep).may_run())
        ++counted.by_priority[sweeps_.at(claim.sweep).stored.priority];
  }
  const Load kept = load();
  if (std::tie(kept.under_way, kept.ready, kept.by_priority) !=
      std::tie(counted.under_way, counted.ready, counted.by_priority))
    lines.push_back(fmt::format("load {} {} {} (counted {} {} {})", kept.under_way, kept.ready,
                                kept.by_priority, counted.under_way, counted.ready, counted.by_priority));
  std::ranges::sort(lines);
  return lines;
}

}  // namespace abl::scheduler
