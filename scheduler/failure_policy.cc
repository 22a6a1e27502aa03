// SPDX-License-Identifier: Apache-2.0
#include "scheduler/failure_policy.h"

#include <fmt/format.h>

#include <algorithm>

namespace abl::scheduler {

bool is_to_hold(const storage::FailureCounts& counts, bool elsewhere) {
  const bool whole = counts.of.factor.empty() && counts.of.level.empty();
  if (counts.held || counts.completed || (whole && counts.sweep_completed)) return false;
  const std::uint32_t of_sweep = counts.canary ? kCanaryFailures : kSweepFailures;
  const bool all_of_level = !whole && counts.failures == counts.sweep_failures;
  const std::uint32_t enough = !whole && counts.sweep_completed ? kLevelFailures : of_sweep;
  if (counts.failures < enough || !(whole || all_of_level || counts.sweep_completed)) return false;
  return counts.several_workers || !elsewhere || counts.failures >= kFailuresOfOneWorker;
}

std::string level_text(const storage::SweepLevel& level, const std::string& sweep) {
  if (!level.factor.empty())
    return fmt::format("all cells with {}={}", level.factor.substr(level.factor.rfind('.') + 1), level.level);
  return level.level.empty() ? "all trials of " + sweep : "all trials of row " + level.level;
}

namespace {

constexpr std::size_t kLongestRow = 64;  // of failures that are remembered
constexpr std::size_t kMostNews = 1000;  // of a worker's news

}  // namespace

void Quarantine::count(storage::SweepId sweep, News news, int sign) {
  Workers& workers = sweeps_[sweep];
  (news == News::kFails ? workers.failing : workers.well) += sign;
  if (workers.well == 0 && workers.failing == 0) sweeps_.erase(sweep);
}

void Quarantine::hear(Worker& worker, const Sweeps& sweeps, News news) {
  for (const storage::SweepId sweep : sweeps) {
    const auto [heard, fresh] = worker.news.try_emplace(sweep, news);
    if (!fresh) {
      if (heard->second == news) continue;
      count(sweep, heard->second, -1);
      heard->second = news;
    }
    count(sweep, news, +1);
    if (worker.news.size() <= kMostNews) continue;
    count(worker.news.begin()->first, worker.news.begin()->second, -1);  // the oldest
    worker.news.erase(worker.news.begin());
  }
}

void Quarantine::began(const std::string& name, const Sweeps& sweeps) {
  Worker& worker = workers_[name];
  for (const storage::SweepId sweep : sweeps)  // until it ends nothing is known that was not before
    if (!worker.news.contains(sweep)) hear(worker, {sweep}, News::kRuns);
}

void Quarantine::got_through(const std::string& name, const Sweeps& sweeps) {
  hear(workers_[name], sweeps, News::kThrough);
}

void Quarantine::clear_row(const std::string& name, Worker& worker) {
  for (const Failure& failure : worker.row) {
    const auto found = failed_on_.find(failure.trial);
    if (found == failed_on_.end()) continue;
    found->second.erase(name);
    if (found->second.empty()) failed_on_.erase(found);
  }
  worker.row.clear();
}

std::optional<Quarantine::Change> Quarantine::completed(const std::string& name, const Sweeps& sweeps) {
  Worker& worker = workers_[name];
  hear(worker, sweeps, News::kThrough);
  clear_row(name, worker);
  if (!worker.why) return std::nullopt;
  forgive(name);
  return Change{.worker = name};
}

/// How many of its failures in a row speak against it.
int Quarantine::blamed(const std::string& name, const Worker& worker) const {
  return static_cast<int>(std::ranges::count_if(worker.row, [&](const Failure& failure) {
    const auto elsewhere = failed_on_.find(failure.trial);
    if (elsewhere != failed_on_.end() && elsewhere->second.size() > elsewhere->second.count(name))
      return false;
    return std::ranges::any_of(failure.sweeps, [&](const storage::SweepId sweep) {
      const auto found = sweeps_.find(sweep);
      if (found == sweeps_.end()) return false;
      Workers others = found->second;
      if (const auto own = worker.news.find(sweep); own != worker.news.end())
        --(own->second == News::kFails ? others.failing : others.well);
      return others.well > others.failing;
    });
  }));
}

std::vector<Quarantine::Change> Quarantine::failed(const std::string& name, storage::TrialId trial,
                                                   const Sweeps& sweeps, const std::string& reason,
                                                   bool probe) {
  std::vector<Change> changes;
  if (policy_.after == 0) return changes;
  Worker& worker = workers_[name];
  hear(worker, sweeps, News::kFails);
  worker.last_reason = reason;
  if (std::ranges::find(worker.row, trial, &Failure::trial) == worker.row.end()) {
    if (worker.row.size() >= kLongestRow) {
      std::vector<Failure> rest{worker.row.begin() + 1, worker.row.end()};
      clear_row(name, worker);
      worker.row = std::move(rest);
      for (const Failure& failure : worker.row) failed_on_[failure.trial].insert(name);
    }
    worker.row.push_back({trial, sweeps});
    failed_on_[trial].insert(name);
  }
  const int against = blamed(name, worker);
  const auto why = [&] {
    return fmt::format("{} trials failed on it one after the other, none of them elsewhere; the last: {}",
                       against, reason.empty() ? "no reason given" : reason);
  };
  if (!worker.why && against >= policy_.after) {
    set(name, why(), policy_.first);
    changes.push_back({name, worker.why, worker.back_off});
  } else if (worker.why && probe) {
    // after a restart nothing is known of the failures before it
    set(name, against >= policy_.after ? why() : *worker.why, std::min(2 * worker.back_off, policy_.longest));
    changes.push_back({name, worker.why, worker.back_off});
  }
  const std::set<std::string> confined = in_quarantine_;
  for (const std::string& other : confined) {
    const Worker& held = workers_.at(other);
    if (static_cast<int>(held.row.size()) < policy_.after || blamed(other, held) >= policy_.after) continue;
    forgive(other);
    changes.push_back({.worker = other});
  }
  return changes;
}

void Quarantine::gone(const std::string& name) {
  const auto worker = workers_.find(name);
  if (worker == workers_.end()) return;
  for (const auto& [sweep, news] : worker->second.news) count(sweep, news, -1);
  worker->second.news.clear();
  if (worker->second.row.empty() && !worker->second.why) workers_.erase(worker);
}

void Quarantine::set(const std::string& name, const std::string& why, Milliseconds back_off) {
  workers_[name].why = why;
  workers_[name].back_off = std::max(back_off, Milliseconds{1});
  in_quarantine_.insert(name);
}

void Quarantine::forgive(const std::string& name) {
  const auto worker = workers_.find(name);
  if (worker == workers_.end()) return;
  worker->second.why.reset();
  clear_row(name, worker->second);
  in_quarantine_.erase(name);
}

bool Quarantine::contains(const std::string& name) const { return in_quarantine_.contains(name); }

}  // namespace abl::scheduler
