// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "config/document/result_version.h"

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
  return std::count_if(worker.slots.begin(), worker.slots.end(),
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
  const char *words, *flag, *place;
};
constexpr Kind kData{&WorkerState::data, "data set", "--data", "FOLDER"};
constexpr Kind kWeights{&WorkerState::weights, "weights", "--weights", "FILE"};

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
  return fmt::format("no worker{} has the {} {} (start one with {} {}={})",
                     elsewhere ? " that has the rest" : "", kind.words, wanted.name, kind.flag, wanted.name,
                     kind.place);
}

std::string gpus(std::size_t count) { return fmt::format("{} GPU{}", count, count == 1 ? "" : "s"); }

}  // namespace

std::optional<Placement> place(const Demand& demand, std::vector<WorkerState>& workers) {
  WorkerState* best = nullptr;
  std::tuple<bool, std::int64_t> best_score;
  for (WorkerState& worker : workers) {
    if (worker.draining || !worker.trouble.empty() || (demand.command && !worker.allows_commands)) continue;
    if (!right_trainer(demand, worker) || !has_files(demand, worker)) continue;
    if (worker.refused.contains(demand.trial)) continue;
    const auto free = static_cast<std::int64_t>(slots_free(demand, worker));
    if (slots_free(demand, worker) < slots_needed(demand)) continue;
    const bool home = !demand.home.empty() && worker.host == demand.home;
    const std::tuple score{home, demand.gpus == 0 ? free : -free};
    if (!best || score > best_score) std::tie(best, best_score) = std::tuple{&worker, score};
  }
  if (!best) return std::nullopt;
  Placement placement{.trial = demand.trial, .session = best->session};
  for (SlotState& slot : best->slots) {
    if (placement.slots.size() == slots_needed(demand)) break;
    if (slot.busy || !usable(demand, slot)) continue;
    slot.busy = true;
    placement.slots.push_back(slot.index);
  }
  return placement;
}

std::string why_waiting(const Demand& demand, const std::vector<WorkerState>& workers) {
  std::vector<const WorkerState*> left;
  for (const WorkerState& worker : workers) left.push_back(&worker);
  if (left.empty()) return "no worker is connected";
  left = those(left, [](const WorkerState& worker) { return !worker.draining; });
  if (left.empty()) return fmt::format("worker {} is stopping", workers.front().name);

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

  if (!demand.data.empty())
    if (auto why = keep_those_with(kData, {demand.data}, workers, left); !why.empty()) return why;
  for (const Wanted& wanted : demand.weights)
    if (auto why = keep_those_with(kWeights, wanted, workers, left); !why.empty()) return why;

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

  const auto refusing =
      those(left, [&](const WorkerState& worker) { return worker.refused.contains(demand.trial); });
  if (refusing.size() == left.size())
    return fmt::format("worker {} refused it: {}", refusing.front()->name,
                       refusing.front()->refused.at(demand.trial));

  std::size_t slots = 0, most_free = 0;
  for (const WorkerState* worker : left) {
    slots += slots_there(demand, *worker);
    most_free = std::max(most_free, slots_free(demand, *worker));
  }
  if (most_free > 0 && most_free < slots_needed(demand))
    return fmt::format("needs {} of one worker; {} free now", gpus(slots_needed(demand)), most_free);
  const char* what = demand.gpus > 0 ? "GPU" : "slot";
  return slots == 1 ? fmt::format("the only {} is busy", what)
                    : fmt::format("all {} {}s are busy", slots, what);
}

}  // namespace abl::scheduler
