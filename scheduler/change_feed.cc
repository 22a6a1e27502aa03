// SPDX-License-Identifier: Apache-2.0
#include "scheduler/change_feed.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace abl::scheduler {

namespace {

/// Above every number of an earlier start: nobody says a million changes a second.
std::uint64_t first_number() {
  using namespace std::chrono;
  return static_cast<std::uint64_t>(
      duration_cast<microseconds>(system_clock::now().time_since_epoch()).count());
}

}  // namespace

ChangeFeed::ChangeFeed(Milliseconds interval)
    : interval_{interval}, log_{first_number()}, thread_{[this] { run(); }} {}

ChangeFeed::~ChangeFeed() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void ChangeFeed::publish(storage::Change change) {
  {
    const std::lock_guard lock{mutex_};
    pending_.insert(std::move(change));
  }
  wake_.notify_all();
}

ChangeFeed::Subscription ChangeFeed::subscribe(Subscriber subscriber) {
  const std::lock_guard lock{subscribers_mutex_};
  subscribers_.emplace(next_id_, std::make_shared<Subscriber>(std::move(subscriber)));
  return {this, next_id_++};
}

void ChangeFeed::unsubscribe(std::uint64_t id) {
  const std::lock_guard lock{subscribers_mutex_};
  subscribers_.erase(id);
}

ChangeFeed::Subscription::~Subscription() {
  if (feed_) feed_->unsubscribe(id_);
}

void ChangeFeed::run() {
  using Steady = std::chrono::steady_clock;
  std::uint32_t quick = kQuickOnes;
  Steady::time_point earned_up_to = Steady::now();
  std::unique_lock lock{mutex_};
  while (true) {
    wake_.wait_for(lock, kBeat, [this] { return stopping_ || !pending_.empty(); });
    if (stopping_) return;
    const std::set<storage::Change> changes = std::exchange(pending_, {});
    lock.unlock();
    {
      const std::lock_guard subscribers{subscribers_mutex_};
      std::vector<std::shared_ptr<Subscriber>> called;  // a copy: calls may end subscriptions
      for (const auto& [id, subscriber] : subscribers_) called.push_back(subscriber);
      for (const auto& subscriber : called) (*subscriber)(changes);
    }
    lock.lock();
    if (changes.empty()) continue;
    for (; quick < kQuickOnes && Steady::now() - earned_up_to >= interval_; earned_up_to += interval_)
      ++quick;
    if (quick == kQuickOnes) earned_up_to = Steady::now();
    const bool is_quick = quick > 0;
    if (is_quick) --quick;
    wake_.wait_for(lock, is_quick ? std::min(kQuickly, interval_) : interval_, [this] { return stopping_; });
  }
}

}  // namespace abl::scheduler
