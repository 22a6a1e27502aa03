// SPDX-License-Identifier: Apache-2.0
#include "storage/change_log.h"

#include <algorithm>
#include <vector>

namespace abl::storage {
namespace {

void sort_once(std::vector<std::uint32_t>& ids) {
  std::ranges::sort(ids);
  const auto twice = std::ranges::unique(ids);
  ids.erase(twice.begin(), twice.end());
}

}  // namespace

void ChangeLog::push(Kind kind, std::uint32_t id) {
  entries_.push_back({++newest_, id, kind});
  if (entries_.size() <= most_) return;
  forgotten_ = entries_.front().number;
  entries_.pop_front();
}

void ChangeLog::add(const Touched& touched) {
  const std::lock_guard lock{mutex_};
  for (const TrialId trial : touched.trials) push(Kind::kTrial, trial);
  for (const SweepId sweep : touched.sweeps) push(Kind::kSweep, sweep);
}

std::uint64_t ChangeLog::number() const {
  const std::lock_guard lock{mutex_};
  return newest_;
}

ChangeLog::Since ChangeLog::since(std::uint64_t number) const {
  Since since;
  {
    const std::lock_guard lock{mutex_};
    since.number = newest_;
    since.complete = number >= forgotten_ && number <= newest_;
    if (!since.complete) return since;
    const auto first = std::ranges::upper_bound(entries_, number, {}, &Entry::number);
    for (auto entry = first; entry != entries_.end(); ++entry)
      (entry->kind == Kind::kTrial ? since.touched.trials : since.touched.sweeps).push_back(entry->id);
  }
  sort_once(since.touched.trials);
  sort_once(since.touched.sweeps);
  return since;
}

}  // namespace abl::storage
