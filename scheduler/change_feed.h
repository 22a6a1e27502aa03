// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "storage/change.h"
#include "storage/change_log.h"

namespace abl::scheduler {

/// Tells watchers what changed, after the commit. Changes are collected, so that a watcher hears of each at
/// once after a quiet time, of the few that follow quickly (a short trial is leased, runs and completes
/// within milliseconds), and otherwise once in an interval; when there are none, every second that there are
/// none. Thread: all methods, from any; subscribers are called on the feed's thread.
class ChangeFeed {
 public:
  using Subscriber = std::function<void(const std::set<storage::Change>&)>;
  static constexpr Milliseconds kBeat{1000};
  static constexpr Milliseconds kQuickly{10};
  static constexpr std::uint32_t kQuickOnes = 16;  ///< one more in each interval, up to these

  explicit ChangeFeed(Milliseconds interval = Milliseconds{250});
  ~ChangeFeed();

  void publish(storage::Change change);
  /// What a commit has touched, before anybody hears of that commit: it stands in the log when this returns,
  /// and subscribers find it there when they are called, by the changes that follow or within a second.
  void publish(const storage::Touched& touched) { log_.add(touched); }
  const storage::ChangeLog& log() const { return log_; }

  /// Ends the subscription when it goes; a call under way is waited for, unless it is the call itself that
  /// ends it.
  class Subscription {
   public:
    Subscription() = default;
    Subscription(ChangeFeed* feed, std::uint64_t id) : feed_{feed}, id_{id} {}
    Subscription(Subscription&& other) noexcept { *this = std::move(other); }
    Subscription& operator=(Subscription&& other) noexcept {
      std::swap(feed_, other.feed_);
      std::swap(id_, other.id_);
      return *this;
    }
    ~Subscription();

   private:
    ChangeFeed* feed_ = nullptr;
    std::uint64_t id_ = 0;
  };
  [[nodiscard]] Subscription subscribe(Subscriber subscriber);

 private:
  void run();
  void unsubscribe(std::uint64_t id);

  const Milliseconds interval_;
  storage::ChangeLog log_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::set<storage::Change> pending_;
  bool stopping_ = false;
  std::recursive_mutex subscribers_mutex_;  // held during calls: a subscriber may unsubscribe itself
  std::map<std::uint64_t, std::shared_ptr<Subscriber>> subscribers_;
  std::uint64_t next_id_ = 1;
  std::thread thread_;
};

}  // namespace abl::scheduler
