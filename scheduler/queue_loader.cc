// SPDX-License-Identifier: Apache-2.0
// How the queue in memory follows the store.
#include "scheduler/work_queue.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "storage/measured_store.h"
#include "storage/queue_store.h"

namespace abl::scheduler {
namespace {

using storage::OpenTrial;
using storage::QueueStore;

Demand demand_of(const storage::StoredDemand& stored, const std::map<std::string, std::string>& pins) {
  Demand demand{.gpus = stored.gpus,
                .split = stored.split,
                .data = stored.data,
                .command = stored.command,
                .where = stored.where,
                .packs = stored.pack,
                .sources = stored.sources};
  if (!stored.command) demand.result_version = stored.result_version;
  for (const auto& [name, sha256] : stored.weights) {
    const auto pin = pins.find(name);
    demand.weights.push_back({name, !sha256.empty() || pin == pins.end() ? sha256 : pin->second});
  }
  return demand;
}

void read_shape(WorkQueue& queue, const QueueStore& store, storage::ShapeId shape) {
  const storage::StoredDemand stored = store.demand(shape);
  queue.put_shape(
      shape, demand_of(stored, stored.weights.empty() ? std::map<std::string, std::string>{} : store.pins()));
}

void put(WorkQueue& queue, const QueueStore& store, OpenTrial trial, Time now) {
  if (!queue.has_shape(trial.shape)) read_shape(queue, store, trial.shape);
  queue.put(std::move(trial), now);
}

}  // namespace

void load(WorkQueue& queue, storage::Database& db, Time now) {
  const storage::Transaction snapshot{db, storage::Transaction::kRead};
  const QueueStore store{db};
  queue.clear();
  for (const auto& [pack, bytes] : storage::MeasuredStore{db}.memories()) queue.put_memory(pack, bytes);
  for (const storage::OpenSweep& sweep : store.sweeps()) queue.put_sweep(sweep);
  store.each_open([&](OpenTrial trial) { put(queue, store, std::move(trial), now); });
}

void follow(WorkQueue& queue, storage::Database& db, const storage::Touched& touched, Time now) {
  const storage::Transaction snapshot{db, storage::Transaction::kRead};
  const QueueStore store{db};
  if (touched.pins)
    for (const storage::ShapeId shape : queue.shapes()) read_shape(queue, store, shape);
  std::vector<storage::SweepId> removed;
  for (const storage::SweepId id : touched.sweeps)
    if (const auto sweep = store.sweep(id))
      queue.put_sweep(*sweep);
    else
      removed.push_back(id);
  auto trials = touched.trials;
  std::ranges::sort(trials);
  trials.erase(std::unique(trials.begin(), trials.end()), trials.end());
  auto next = trials.begin();
  store.each_open(trials, [&](OpenTrial open) {
    for (; *next != open.id; ++next) queue.erase(*next);
    ++next;
    put(queue, store, std::move(open), now);
  });
  for (; next != trials.end(); ++next) queue.erase(*next);
  for (const storage::SweepId id : removed) queue.erase_sweep(id);
}

}  // namespace abl::scheduler
