// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "worker/agent/depot_link.h"
#include "worker/agent/held_file.h"

namespace abl::agent {
namespace {

using namespace std::chrono_literals;

constexpr auto kTryAgain = 500ms;  // the scheduler may not have stored yet that there is such a checkpoint
constexpr auto kWhenFull = 30s;    // where the depot has no room
constexpr int kMostTries = 60;     // of one file
constexpr int kMostBreaks = 30;    // of one try, with waits between them; then others have their turn
constexpr std::size_t kMostRuns = 10'000;

}  // namespace

Courier::Courier(std::filesystem::path runs_root, Send send)
    : runs_root_{std::move(runs_root)},
      send_{std::move(send)},
      thread_{[this](const std::stop_token& stop) { work(stop); }} {}

Courier::~Courier() {
  thread_.request_stop();
  thread_.join();
}

/// With the lock held.
void Courier::tell() {
  news_ = true;
  changed_.notify_all();
}

void Courier::set_every(Milliseconds every) {
  const std::lock_guard lock{mutex_};
  every_ = every;
  if (every_ == Milliseconds{0}) loads_.clear();
  tell();
}

bool Courier::brings() const {
  const std::lock_guard lock{mutex_};
  return every_ > Milliseconds{0};
}

void Courier::set_connected(bool connected) {
  const std::lock_guard lock{mutex_};
  if (connected_ == connected) return;
  connected_ = connected;
  tell();
}

void Courier::wrote(const ForRun& run, const ablate::v1::Checkpoint& checkpoint) {
  const std::lock_guard lock{mutex_};
  if (every_ == Milliseconds{0} || checkpoint.sha256().empty()) return;
  if (!loads_.contains(run.run) && loads_.size() >= kMostRuns) return;
  const auto [found, is_new] = loads_.try_emplace(run.run);
  Load& load = found->second;
  if (is_new) load.due = std::chrono::steady_clock::now() + every_;
  load.token = run.token;
  load.failed = 0;
  load.newest = File{checkpoint.step(), checkpoint.path(), checkpoint.sha256()};
  if (!checkpoint.best().empty()) load.best = File{checkpoint.step(), checkpoint.best(), checkpoint.sha256()};
  tell();
}

bool Courier::bring(std::uint32_t run, bool best, std::chrono::milliseconds patience,
                    const std::function<bool()>& go_on) {
  const SteadyTime deadline = std::chrono::steady_clock::now() + patience;
  std::unique_lock lock{mutex_};
  if (const auto found = loads_.find(run); found == loads_.end()) return true;
  loads_[run].hurry = true;
  loads_[run].wanted = best;
  if (!best) loads_[run].best.reset();
  tell();
  const auto is_there = [&] {
    const auto found = loads_.find(run);
    return found == loads_.end() || (!found->second.newest && !found->second.best);
  };
  while (!is_there()) {
    if (!connected_ || loads_[run].refused || std::chrono::steady_clock::now() >= deadline) return false;
    changed_.wait_for(lock, 100ms);
    lock.unlock();
    const bool goes_on = go_on();
    lock.lock();
    if (!goes_on) return false;
  }
  return true;
}

void Courier::forget(std::uint32_t run, bool when_brought) {
  const std::lock_guard lock{mutex_};
  const auto found = loads_.find(run);
  if (found == loads_.end()) return;
  Load& load = found->second;
  if (!load.wanted) load.best.reset();
  if ((when_brought || load.wanted) && (load.newest || load.best))
    load.leaves = load.hurry = true;
  else
    loads_.erase(found);
  tell();
}

/// The load that is due first. `wake`: when the next one is.
std::optional<Courier::Item> Courier::next_due(SteadyTime now, SteadyTime& wake) const {
  std::optional<Item> first;
  SteadyTime earliest = SteadyTime::max();
  for (const auto& [run, load] : loads_) {
    if (!load.newest && !(load.best && load.hurry)) continue;
    const SteadyTime due = load.hurry && load.failed == 0 ? SteadyTime::min() : load.due;
    if (due > now) {
      wake = std::min(wake, due);
      continue;
    }
    if (first && due >= earliest) continue;
    earliest = due;
    const bool is_best = !load.newest;
    first = Item{run, load.token, is_best, is_best ? *load.best : *load.newest};
  }
  return first;
}

void Courier::work(const std::stop_token& stop) {
  std::unique_lock lock{mutex_};
  while (!stop.stop_requested()) {
    SteadyTime wake = std::chrono::steady_clock::now() + 1h;
    news_ = false;
    const auto item = connected_ ? next_due(std::chrono::steady_clock::now(), wake) : std::nullopt;
    if (!item) {
      changed_.wait_until(lock, stop, wake, [this] { return news_; });
      continue;
    }
    lock.unlock();
    const Outcome outcome = carry(*item, stop);
    lock.lock();
    note(*item, outcome);
    changed_.notify_all();
  }
}

Courier::Outcome Courier::carry(const Item& item, const std::stop_token& stop) {
  try {
    const HeldFile held{item.file.path};
    // a program says where its checkpoints lie, and may say anything; what is gone has a newer one
    if (!held.is_regular() || !held.lies_under(runs_root_) || held.bytes() == 0) return Outcome::kNever;
    int breaks = 0;
    const auto go_on = [&](std::chrono::milliseconds wait) {
      if (wait > 0ms && ++breaks == kMostBreaks)
        log_warning(
            {{"run", item.run}},
            "the checkpoint of step {} of run {} cannot be uploaded: the scheduler's depot does not answer; "
            "trying again",
            item.file.step, item.run);
      if (breaks >= kMostBreaks) return false;
      std::unique_lock lock{mutex_};
      changed_.wait_for(lock, stop, wait, [&] { return !connected_; });
      return !stop.stop_requested() && connected_ && loads_.contains(item.run);
    };
    if (!send_({.run = item.run, .token = item.token}, held.path(), item.file.sha256, held.bytes(), go_on))
      return Outcome::kLater;
    log_info({{"run", item.run}}, "the checkpoint of step {} of run {} is in the scheduler's depot",
             item.file.step, item.run);
    return Outcome::kBrought;
  } catch (const Error& error) {
    if (error.code() == Code::kNotFound) return Outcome::kLater;
    const bool full = error.code() == Code::kResourceExhausted;
    log_warning({{"run", item.run}},
                "the checkpoint of step {} of run {} was not brought to the scheduler's depot: {}",
                item.file.step, item.run, error.what());
    return full ? Outcome::kRefused : Outcome::kNever;
  } catch (const std::exception& error) {
    log_warning("{}", error.what());
    return Outcome::kLater;
  }
}

void Courier::note(const Item& item, Outcome outcome) {
  const auto found = loads_.find(item.run);
  if (found == loads_.end()) return;
  Load& load = found->second;
  const auto now = std::chrono::steady_clock::now();
  auto& file = item.is_best ? load.best : load.newest;
  const bool same = file && file->sha256 == item.file.sha256;
  load.refused = outcome == Outcome::kRefused;
  if ((outcome == Outcome::kLater || load.refused) && (!same || ++load.failed < kMostTries)) {
    load.due = now + (load.refused ? Milliseconds{kWhenFull} : Milliseconds{kTryAgain});
    return;
  }
  if (same) file.reset();
  load.failed = 0;
  load.due = now + every_;
  if (outcome == Outcome::kBrought && load.best && load.best->sha256 == item.file.sha256) load.best.reset();
  if (load.leaves && !load.newest && !load.best) loads_.erase(found);
}

}  // namespace abl::agent
