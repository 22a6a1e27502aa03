// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/named_path.h"
#include "config/document/result_version.h"
#include "launchers/launcher.h"
#include "storage/worker_store.h"

namespace abl::scheduler {
namespace {

bool right_trainer(const Demand& demand, const WorkerState& worker) {
  if (demand.command) return true;
  if (worker.result_version == 0 || worker.result_version > config::newest_result_version()) return false;
  return worker.result_version >= demand.result_version.value_or(0);
}

bool has_files(const Demand& demand, const WorkerState& worker) {
  return (demand.data.empty() || worker.data.has({demand.data})) &&
         std::all_of(demand.weights.begin(), demand.weights.end(),
                     [&](const Wanted& wanted) { return worker.weights.has(wanted); });
}

bool usable(const Demand& demand, const SlotState& slot) { return demand.gpus == 0 || slot.cuda; }

std::size_t slots_needed(const Demand& demand) {
  return demand.gpus == 0 ? 1 : static_cast<std::size_t>(demand.gpus);
}

std::size_t slots_there(const Demand& demand, const WorkerState& worker) {
  return std::count_if(worker.slots.begin(), worker.slots.end(),
                       [&](const SlotState& slot) { return usable(demand, slot); });
}

std::size_t slots_free(const Demand& demand, const WorkerState& worker) {
  return std::count_if(worker.slots.begin(), worker.slots.end(), [&](const SlotState& slot) {
    return usable(demand, slot) && !slot.busy && !slot.reserved;
  });
}

/// Those that are free now, or as soon as runs that were told to give way have ended.
std::size_t slots_soon(const Demand& demand, const WorkerState& worker) {
  return std::ranges::count_if(worker.slots, [&](const SlotState& slot) {
    return usable(demand, slot) && (!slot.busy || slot.clearing);
  });
}

/// Those that are kept for another too.
std::size_t slots_idle(const Demand& demand, const WorkerState& worker) {
  return std::ranges::count_if(worker.slots,
                               [&](const SlotState& slot) { return usable(demand, slot) && !slot.busy; });
}

/// The workers for which a requirement holds.
template <class Requirement>
std::vector<const WorkerState*> those(const std::vector<const WorkerState*>& workers,
                                      Requirement requirement) {
  std::vector<const WorkerState*> result;
  std::copy_if(workers.begin(), workers.end(), std::back_inserter(result),
               [&](const WorkerState* worker) { return requirement(*worker); });
  return result;
}

/// A kind of thing that workers have by name, and how people say so.
struct Kind {
  Mapped WorkerState::*mapped;
  std::string (*words)(const std::string& name);
  std::string (*flag)(const std::string& name);  ///< by which a worker gets it
};
constexpr Kind kData{&WorkerState::data, [](const std::string& name) { return "data set " + name; },
                     [](const std::string& name) { return fmt::format("--data {}=FOLDER", name); }};
constexpr Kind kWeights{
    &WorkerState::weights,
    [](const std::string& name) { return fmt::format("{} {}", kind_of_file(name), name_of_file(name)); },
    [](const std::string& name) { return flag_of_file(name); }};

/// Leaves of the workers those that have what is wanted. Returns: why that is none of them, or empty.
std::string keep_those_with(const Kind& kind, const Wanted& wanted, const std::vector<WorkerState>& all,
                            std::vector<const WorkerState*>& left) {
  const auto has = [&](const WorkerState& worker) { return (worker.*kind.mapped).has(wanted); };
  const auto wrong =
      those(left, [&](const WorkerState& worker) { return (worker.*kind.mapped).wrong.contains(wanted); });
  const auto gone = those(
      left, [&](const WorkerState& worker) { return (worker.*kind.mapped).gone.contains(wanted.name); });
  left = those(left, has);
  if (!left.empty()) return {};
  if (!wrong.empty()) return (wrong.front()->*kind.mapped).wrong.at(wanted);
  if (!gone.empty())
    return fmt::format("worker {}: {}", gone.front()->name,
                       (gone.front()->*kind.mapped).gone.at(wanted.name));
  const bool elsewhere = std::any_of(all.begin(), all.end(), has);  // on one that lacks something else
  return fmt::format("no worker{} has the {} (start one with {})", elsewhere ? " that has the rest" : "",
                     kind.words(wanted.name), kind.flag(wanted.name));
}

std::string gpus(std::size_t count) { return fmt::format("{} GPU{}", count, count == 1 ? "" : "s"); }

}  // namespace

namespace {

bool has_time(const Demand& demand, const WorkerState& worker) {
  return !worker.ends || wants_left(demand, worker) <= worker.left;
}

/// But for its time.
bool suits(const Demand& demand, const WorkerState& worker) {
  return !worker.draining && !worker.drained && !worker.resting && worker.trouble.empty() &&
         (!demand.command || worker.allows_commands) && (!demand.sources || worker.takes_sources) &&
         right_trainer(demand, worker) && storage::suits(demand.where, worker.labels) &&
         has_files(demand, worker) && !demand.refused_by.contains(worker.session) &&
         std::ranges::find(demand.failed_on, worker.host) == demand.failed_on.end();
}

bool may_take(const Demand& demand, const WorkerState& worker) {
  return suits(demand, worker) && has_time(demand, worker);
}

/// "40 s", "12 min", "3.5 h": what changes little does not change the text.
std::string about(Milliseconds time) {
  const double seconds = Seconds{time}.count();
  if (seconds < 90) return fmt::format("{:.0f} s", std::max(1.0, seconds));
  if (seconds < 5400) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

}  // namespace

Milliseconds wants_left(const Demand& demand, const WorkerState& worker) {
  const Milliseconds start = launchers::worthwhile(worker.whole);
  if (demand.takes.count() == 0) return start;
  return demand.command ? with_reserve(demand.takes) : std::min(demand.takes, start);
}

std::optional<Milliseconds> time_left_for(const Demand& demand, const std::vector<WorkerState>& workers) {
  std::optional<Milliseconds> most;
  for (const WorkerState& worker : workers) {
    if (demand.split.most_nodes > 1 || slots_free(demand, worker) < slots_needed(demand) ||
        !suits(demand, worker) || has_time(demand, worker))
      continue;
    const Milliseconds fits = demand.command ? worker.left * 10 / 11 : worker.left;
    most = std::max(most.value_or(Milliseconds{0}), fits);
  }
  return most;
}

bool takes_several(const Demand& demand) { return demand.gpus > 1 || demand.split.most_nodes > 1; }

namespace {

/// Whether several workers may run it: a command has one machine, and so have the weights of other trials.
bool may_be_divided(const Demand& demand) {
  return takes_several(demand) && !demand.command && !demand.sources &&
         (demand.split.most_nodes == 0 || demand.split.most_nodes > 1);
}

bool may_join(const Demand& demand, const WorkerState& worker) {
  return worker.joins && !worker.quarantine && may_take(demand, worker);
}

/// By how many workers its sweep says.
std::optional<Division> divide_evenly(const Demand& demand, const std::vector<WorkerState>& workers) {
  const auto& split = demand.split;
  const int each = demand.gpus == 0 ? 1 : demand.gpus / split.most_nodes;
  const auto enough = [&](const WorkerState& worker) {
    return slots_there(demand, worker) >= static_cast<std::size_t>(each);
  };
  if (may_be_divided(demand)) {
    const auto joining = static_cast<int>(std::ranges::count_if(
        workers, [&](const WorkerState& worker) { return enough(worker) && may_join(demand, worker); }));
    const int most = std::min(joining, split.most_nodes);
    if (most >= std::max(2, split.least_nodes))
      return Division{.workers = most, .slots = most * each, .each = each};
  }
  const bool one = std::ranges::any_of(
      workers, [&](const WorkerState& worker) { return enough(worker) && may_take(demand, worker); });
  if (split.least_nodes > 1 || !one) return std::nullopt;
  return Division{.workers = 1, .slots = each, .each = each};
}

}  // namespace

std::optional<Division> divide(const Demand& demand, const std::vector<WorkerState>& workers) {
  if (demand.split.most_nodes > 0) return divide_evenly(demand, workers);
  const std::size_t most = slots_needed(demand);
  const std::size_t least =
      demand.split.least_gpus > 0 ? static_cast<std::size_t>(demand.split.least_gpus) : most;
  std::size_t largest = 0, together = 0;
  for (const WorkerState& worker : workers) {
    if (!may_take(demand, worker)) continue;
    const std::size_t there = slots_there(demand, worker);
    largest = std::max(largest, there);
    if (worker.joins && !worker.quarantine) together += there;
  }
  largest = std::min(largest, most), together = std::min(together, most);
  if (largest >= least && (largest >= together || !may_be_divided(demand)))
    return Division{.slots = static_cast<int>(largest)};
  if (together >= least && may_be_divided(demand))
    return Division{.workers = 2, .slots = static_cast<int>(together)};
  return std::nullopt;
}

namespace {

/// A worker and how many of its slots are taken for a trial.
struct Share {
  WorkerState* worker = nullptr;
  std::size_t slots = 0;
};

/// Which workers run a trial together, the one with the lease first: of those that have what `count` tells of
/// each. Nothing where these are not enough.
template <class Count>
std::vector<Share> share_out(const Demand& demand, const Division& division,
                             std::vector<WorkerState>& workers, Count count) {
  std::vector<Share> all;
  const std::size_t least = division.each > 0 ? static_cast<std::size_t>(division.each) : 1;
  for (WorkerState& worker : workers)
    if (may_join(demand, worker))
      if (const std::size_t there = count(worker); there >= least) all.push_back({&worker, there});
  const auto order = [&](const Share& share) {
    const bool home = !demand.home.empty() && share.worker->host == demand.home;
    // evenly: where the gap is smallest; otherwise on as few workers as it takes
    const auto slots = static_cast<std::int64_t>(share.slots);
    return std::tuple{!home, division.each > 0 ? slots : -slots, share.worker->session};
  };
  std::ranges::sort(all, {}, order);
  std::vector<Share> chosen;
  std::size_t left = static_cast<std::size_t>(division.slots);
  for (const Share& share : all) {
    if (left == 0) break;
    const std::size_t taken = std::min(left, division.each > 0 ? least : share.slots);
    chosen.push_back({share.worker, taken});
    left -= taken;
  }
  if (left > 0) chosen.clear();
  return chosen;
}

std::vector<std::uint32_t> take_slots(const Demand& demand, WorkerState& worker, std::size_t count) {
  std::vector<std::uint32_t> taken;
  for (SlotState& slot : worker.slots) {
    if (taken.size() == count) break;
    if (slot.busy || slot.reserved || !usable(demand, slot)) continue;
    slot.busy = true;
    if (demand.packs && demand.memory_bytes > 0)
      slot.sharing = 1, slot.used = demand.memory_bytes, slot.slow = true;
    taken.push_back(slot.index);
  }
  return taken;
}

std::optional<Placement> place_on_several(const Demand& demand, const Division& division,
                                          std::vector<WorkerState>& workers) {
  const auto shares = share_out(demand, division, workers,
                                [&](const WorkerState& worker) { return slots_free(demand, worker); });
  if (shares.empty()) return std::nullopt;
  Placement placement{.trial = demand.trial, .session = shares[0].worker->session};
  for (const Share& share : shares)
    for (SlotState& slot : share.worker->slots)
      if (!slot.busy) slot.slow = true;  // nothing is leased behind a part of a run
  placement.slots = take_slots(demand, *shares[0].worker, shares[0].slots);
  for (std::size_t i = 1; i < shares.size(); ++i)
    placement.parts.push_back({.session = shares[i].worker->session,
                               .slots = take_slots(demand, *shares[i].worker, shares[i].slots)});
  return placement;
}

}  // namespace

std::optional<Placement> place(const Demand& demand, std::vector<WorkerState>& workers) {
  std::size_t needed = 1;
  if (takes_several(demand) || demand.split.any()) {
    const auto division = divide(demand, workers);
    if (!division) return std::nullopt;
    if (division->workers > 1) return place_on_several(demand, *division, workers);
    needed = static_cast<std::size_t>(division->slots);
  }
  WorkerState* best = nullptr;
  std::tuple<bool, std::int64_t> best_score;
  for (WorkerState& worker : workers) {
    const std::size_t free = slots_free(demand, worker);
    if (free < needed || !may_take(demand, worker)) continue;
    const bool home = !demand.home.empty() && worker.host == demand.home;
    const auto load = static_cast<std::int64_t>(free);
    const std::tuple score{home, demand.gpus == 0 || demand.spread ? load : -load};
    if (!best || score > best_score) std::tie(best, best_score) = std::tuple{&worker, score};
  }
  if (!best) return std::nullopt;
  Placement placement{.trial = demand.trial, .session = best->session};
  placement.slots = take_slots(demand, *best, needed);
  best->resting = best->quarantine.has_value();  // until that trial has ended
  return placement;
}

std::optional<Placement> place_ahead(const Demand& demand, std::vector<WorkerState>& workers, int depth) {
  if (takes_several(demand)) return std::nullopt;
  WorkerState* best = nullptr;
  SlotState* best_slot = nullptr;
  for (WorkerState& worker : workers) {
    if (worker.quarantine || !may_take(demand, worker)) continue;
    for (SlotState& slot : worker.slots)
      if (usable(demand, slot) && slot.busy && !slot.slow && !slot.reserved && !slot.awaited &&
          slot.ahead < depth && (!best_slot || slot.ahead < best_slot->ahead))
        best = &worker, best_slot = &slot;
  }
  if (!best) return std::nullopt;
  ++best_slot->ahead;
  return Placement{.trial = demand.trial, .session = best->session, .slots = {best_slot->index}};
}

std::optional<Placement> place_beside(const Demand& demand, std::vector<WorkerState>& workers, int most) {
  constexpr double kUsable = 0.9;                       // of a GPU's memory
  constexpr double kOfEachProcess = 512.0 * (1 << 20);  // CUDA's own, which no trainer counts
  if (!demand.packs || demand.memory_bytes <= 0 || takes_several(demand)) return std::nullopt;
  WorkerState* best = nullptr;
  SlotState* best_slot = nullptr;
  for (WorkerState& worker : workers) {
    if (worker.quarantine || !may_take(demand, worker)) continue;
    for (SlotState& slot : worker.slots) {
      if (!usable(demand, slot) || slot.sharing == 0 || slot.sharing >= most || slot.reserved ||
          slot.clearing)
        continue;
      const double together =
          slot.used + demand.memory_bytes + (slot.cuda ? (slot.sharing + 1) * kOfEachProcess : 0);
      if (together <= kUsable * slot.memory && (!best_slot || slot.sharing < best_slot->sharing))
        best = &worker, best_slot = &slot;
    }
  }
  if (!best) return std::nullopt;
  ++best_slot->sharing, best_slot->used += demand.memory_bytes;
  return Placement{
      .trial = demand.trial, .session = best->session, .slots = {best_slot->index}, .beside = true};
}

bool sharing_pays(double alone, double shared, double at_once) {
  constexpr double kWanted = 1.05;  // of what one does for itself, in the same time
  return alone <= 0 || shared <= 0 || shared * at_once >= kWanted * alone;
}

namespace {

/// Slots that a worker has to have to be of use to a trial that is divided so.
std::size_t least_of_one(const Demand& demand, const std::optional<Division>& division) {
  if (!division) return slots_needed(demand);
  if (division->each > 0) return static_cast<std::size_t>(division->each);
  return division->workers > 1 ? 1 : static_cast<std::size_t>(division->slots);
}

bool could_take(const Demand& demand, const std::optional<Division>& division, const WorkerState& worker) {
  return (division && division->workers > 1 ? may_join(demand, worker) : may_take(demand, worker)) &&
         slots_there(demand, worker) >= least_of_one(demand, division);
}

}  // namespace

bool could_take(const Demand& demand, const WorkerState& worker) {
  if (!takes_several(demand)) return could_take(demand, std::nullopt, worker);
  const std::vector<WorkerState> alone{worker};
  if (divide(demand, alone)) return true;
  const auto& split = demand.split;
  return may_be_divided(demand) &&
         could_take(
             demand,
             Division{.workers = 2,
                      .each = split.most_nodes > 0 && demand.gpus > 0 ? demand.gpus / split.most_nodes : 0},
             worker);
}

void allow_where_it_failed(Demand& demand, const std::vector<WorkerState>& workers) {
  if (demand.failed_on.empty()) return;  // as nearly always
  if (!divide(demand, workers)) demand.failed_on.clear();
}

bool await(const Demand& demand, std::vector<WorkerState>& workers) {
  const auto division = divide(demand, workers);
  if (!division) return false;
  bool any = false;
  for (WorkerState& worker : workers) {
    if (!could_take(demand, division, worker)) continue;
    any = true;
    for (SlotState& slot : worker.slots)
      if (usable(demand, slot)) slot.awaited = true;
  }
  return any;
}

bool reserve(const Demand& demand, std::vector<WorkerState>& workers) {
  const auto division = divide(demand, workers);
  if (!division) return false;
  const auto keep = [&](WorkerState& worker) {
    for (SlotState& slot : worker.slots)
      if (usable(demand, slot))
        slot.reserved = true;  // those that are busy too: nothing goes behind their runs
  };
  if (division->workers == 1) {
    WorkerState* best = nullptr;
    for (WorkerState& worker : workers)
      if (could_take(demand, division, worker) &&
          (!best || slots_soon(demand, worker) > slots_soon(demand, *best)))
        best = &worker;
    if (best) keep(*best);
    return best != nullptr;
  }
  // the workers that need least more to be enough, of each as many slots as it takes where these are free
  std::vector<WorkerState*> all;
  for (WorkerState& worker : workers)
    if (could_take(demand, division, worker)) all.push_back(&worker);
  std::ranges::sort(all, std::ranges::greater{},
                    [&](const WorkerState* worker) { return slots_soon(demand, *worker); });
  std::size_t left = static_cast<std::size_t>(division->slots);
  for (WorkerState* worker : all) {
    if (left == 0) break;
    const std::size_t wanted = std::min(
        left, division->each > 0 ? static_cast<std::size_t>(division->each) : slots_there(demand, *worker));
    left -= wanted;
    if (slots_free(demand, *worker) < wanted) {
      keep(*worker);
      continue;
    }
    std::size_t kept = 0;
    for (SlotState& slot : worker->slots)
      if (kept < wanted && usable(demand, slot) && !slot.busy) slot.reserved = true, ++kept;
  }
  return true;
}

bool keep_from_sharing(const Demand& demand, std::vector<WorkerState>& workers) {
  SlotState* best = nullptr;
  for (WorkerState& worker : workers) {
    if (!could_take(demand, worker)) continue;
    for (SlotState& slot : worker.slots) {
      if (!usable(demand, slot)) continue;
      if (slot.sharing == 0) return false;  // it comes when the run there has ended
      if (!best || slot.sharing < best->sharing) best = &slot;
    }
  }
  if (best) best->reserved = true;
  return best != nullptr;
}

void unreserve(std::vector<WorkerState>& workers) {
  for (WorkerState& worker : workers)
    for (SlotState& slot : worker.slots) slot.reserved = slot.awaited = false;
}

namespace {

/// Of a trial that takes several slots and finds no place: what there is of them. `left`: the workers that
/// have all else that it needs.
std::string why_gang_waits(const Demand& demand, const std::optional<Division>& division,
                           const std::vector<const WorkerState*>& left,
                           const std::vector<WorkerState>& workers) {
  const std::string needs = demand.split.any() ? demand.split.words(demand.gpus) : gpus(slots_needed(demand));
  std::size_t largest = 0, together = 0, joining = 0, free = 0;
  const std::size_t each = least_of_one(demand, division);
  for (const WorkerState* worker : left) {
    const std::size_t there = slots_there(demand, *worker);
    largest = std::max(largest, there);
    if (!may_join(demand, *worker)) continue;
    together += there, free += slots_idle(demand, *worker);
    joining += there >= each;
  }
  if (!division && demand.gpus > 0 && largest == 0)
    return fmt::format("needs {}; no connected worker has one", needs);
  if (!division && (!may_be_divided(demand) || (together == 0 && !demand.split.any())))
    return fmt::format("needs {} of one worker; the largest has {}", needs, largest);
  if (!division && demand.split.most_nodes > 1)
    return fmt::format("needs {}; {} of the connected workers can take part (start workers with --address)",
                       needs, joining);
  if (!division)
    return fmt::format(
        "needs {}; the largest worker has {}, those that take part in trials of several (started with "
        "--address) have {} together",
        needs, largest, together);
  std::vector<WorkerState> copy = workers;
  unreserve(copy);
  if (place(demand, copy)) return fmt::format("needs {}: they are free, it starts at once", needs);
  return fmt::format("needs {}, all at once; {} free now", needs, free);
}

}  // namespace

std::string why_waiting(const Demand& demand, const std::vector<WorkerState>& workers) {
  std::vector<const WorkerState*> left;
  for (const WorkerState& worker : workers) left.push_back(&worker);
  if (left.empty()) return "no worker is connected";
  left = those(left, [](const WorkerState& worker) { return !worker.draining; });
  if (left.empty()) return fmt::format("worker {} is stopping", workers.front().name);
  const WorkerState& drained = *left.front();
  left = those(left, [](const WorkerState& worker) { return !worker.drained; });
  if (left.empty())
    return fmt::format("worker {} is drained{}{} ('ablate workers resume {}' ends that)", drained.name,
                       drained.drained->empty() ? "" : ": ", *drained.drained, drained.name);
  const auto suitable =
      those(left, [&](const WorkerState& worker) { return storage::suits(demand.where, worker.labels); });
  if (suitable.empty()) {
    std::vector<storage::Labels> labels;
    for (const WorkerState* worker : left) labels.push_back(worker->labels);
    return storage::why_nobody_suits(demand.where, labels);
  }
  left = suitable;

  if (demand.command) {
    left = those(left, [](const WorkerState& worker) { return worker.allows_commands; });
    if (left.empty()) return "no worker allows commands (start one with --allow-commands)";
  } else {
    const auto able = those(left, [&](const WorkerState& worker) { return right_trainer(demand, worker); });
    if (able.empty()) {
      const auto trainers = those(left, [](const WorkerState& worker) { return worker.result_version != 0; });
      if (trainers.empty()) return fmt::format("worker {} has no trainer", left.front()->name);
      const std::string& name = trainers.front()->name;
      const int version = trainers.front()->result_version;
      if (version > config::newest_result_version())
        return fmt::format(
            "worker {} has a newer trainer than this scheduler knows (result version {}, here {})", name,
            version, config::newest_result_version());
      return fmt::format("worker {} has trainer result version {}, this needs {}", name, version,
                         demand.result_version.value_or(0));
    }
    left = able;
  }

  const auto linked =
      those(left, [&](const WorkerState& worker) { return !demand.sources || worker.takes_sources; });
  if (linked.empty())
    return fmt::format("worker {} is of a release that takes no weights of other trials", left.front()->name);
  left = linked;

  if (!demand.data.empty())
    if (auto why = keep_those_with(kData, {demand.data}, workers, left); !why.empty()) return why;
  for (const Wanted& wanted : demand.weights)
    if (auto why = keep_those_with(kWeights, wanted, workers, left); !why.empty()) return why;

  if (demand.split.any() || takes_several(demand)) {
    const auto division = divide(demand, workers);
    if (!division || division->workers > 1) return why_gang_waits(demand, division, left, workers);
  }
  std::size_t largest = 0;
  for (const WorkerState* worker : left) largest = std::max(largest, slots_there(demand, *worker));
  if (demand.gpus > 0 && largest == 0)
    return fmt::format("needs {}; no connected worker has one", gpus(slots_needed(demand)));
  if (demand.gpus > 0 && largest < slots_needed(demand))
    return fmt::format("needs {} of one worker; the largest has {}", gpus(slots_needed(demand)), largest);
  if (largest == 0) return fmt::format("worker {} has no slot", left.front()->name);
  left = those(
      left, [&](const WorkerState& worker) { return slots_there(demand, worker) >= slots_needed(demand); });

  const auto well = those(left, [](const WorkerState& worker) { return worker.trouble.empty(); });
  if (well.empty())
    return fmt::format("worker {} is unhealthy: {}", left.front()->name, left.front()->trouble);
  left = well;
  const auto trusted = those(left, [](const WorkerState& worker) { return !worker.resting; });
  if (trusted.empty())
    return fmt::format("worker {} is in quarantine: {} ('ablate workers resume {}' ends that)",
                       left.front()->name, left.front()->quarantine.value_or(""), left.front()->name);
  left = trusted;
  const auto lasting = those(left, [&](const WorkerState& worker) { return has_time(demand, worker); });
  if (lasting.empty() && demand.command && demand.takes.count() > 0)
    return fmt::format(
        "its runs take about {} at a stretch, longer than worker {}{} has left (a higher time limit helps)",
        about(demand.takes), left.front()->name, left.size() > 1 ? ", or any other," : "");
  if (lasting.empty())
    return fmt::format("worker {} ends soon: too little of its time is left", left.front()->name);
  left = lasting;

  std::size_t slots = 0, most_free = 0, most_idle = 0;
  for (const WorkerState* worker : left) {
    slots += slots_there(demand, *worker);
    most_free = std::max(most_free, slots_free(demand, *worker));
    most_idle = std::max(most_idle, slots_idle(demand, *worker));
  }
  if (most_idle > 0 && most_idle < slots_needed(demand))  // though they are kept: for this one, perhaps
    return fmt::format("needs {} of one worker; {} free now", gpus(slots_needed(demand)), most_idle);
  const char* what = demand.gpus > 0 ? "GPU" : "slot";
  if (most_free >= slots_needed(demand)) return fmt::format("a {} is free: it starts at once", what);
  if (most_idle >= slots_needed(demand))
    return fmt::format("the free {}s are kept for a trial that needs several", what);
  return slots == 1 ? fmt::format("the only {} is busy", what)
                    : fmt::format("all {} {}s are busy", slots, what);
}

}  // namespace abl::scheduler
