// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "worker/trainer/tasks/batch.h"

namespace abl::tasks {

/// How many batches a loader may make before they are asked for: as many as its threads keep busy with, but
/// no more than 512 MiB hold, and at least one.
int batches_ahead(std::int64_t images, int image_size, int threads);

/// Makes batches `first` … first+count-1 in the background and hands them out in order. All threads share the
/// work on one batch, and go on to the next when no image of it is left. What a batch holds depends on its
/// plan alone, not on the threads. Thread: one consumer.
///   Making: a batch that any number of threads make together, as BatchInMaking: has_work(), work(stop) and
///   finish()
template <class Making>
class LoaderOf {
 public:
  using Made = decltype(std::declval<Making&>().finish());
  /// Asked once for each batch, in order, by one thread at a time.
  using Begin = std::function<std::shared_ptr<Making>(std::int64_t number)>;
  /// `ahead`: batches that are made, or begun, before they are asked for.
  LoaderOf(std::int64_t first, std::int64_t count, int threads, int ahead, Begin begin)
      : end_{first + count}, ahead_{ahead}, begin_{std::move(begin)}, begun_{first}, given_{first} {
    for (int i = 0; i < std::max(1, threads); ++i) threads_.emplace_back([this] { work(); });
  }
  ~LoaderOf() {
    {
      const std::scoped_lock lock{mutex_};
      stopping_ = true;
    }
    room_.notify_all();
    for (auto& thread : threads_) thread.join();
  }
  LoaderOf(const LoaderOf&) = delete;
  LoaderOf& operator=(const LoaderOf&) = delete;

  /// The next batch; nothing after the last. Throws what making it threw.
  std::optional<Made> next() {
    std::unique_lock lock{mutex_};
    if (given_ >= end_) return std::nullopt;
    ready_.wait(lock, [&] { return done_.contains(given_); });
    Outcome outcome = std::move(done_.extract(given_++).mapped());
    lock.unlock();
    room_.notify_all();
    if (outcome.error) std::rethrow_exception(outcome.error);
    return std::move(outcome.batch);
  }

 private:
  struct Outcome {
    std::optional<Made> batch;
    std::exception_ptr error;
  };
  struct Numbered {
    std::int64_t number = 0;
    std::shared_ptr<Making> batch;  ///< null before the first, and where its plan failed
  };

  void work() {
    const auto has_work = [this] { return newest_.batch && newest_.batch->has_work(); };
    std::unique_lock lock{mutex_};
    for (;;) {
      room_.wait(lock, [&] { return stopping_ || has_work() || begun_ >= end_ || may_begin(); });
      if (stopping_ || (begun_ >= end_ && !has_work())) return;
      if (!has_work()) {
        if (!may_begin()) continue;  // others took the last image since the look above
        begin();
      }
      const auto [number, batch] = newest_;
      if (!batch) continue;
      lock.unlock();
      std::optional<Outcome> outcome;
      if (batch->work(stopping_)) outcome = outcome_of(*batch);
      lock.lock();
      if (outcome) hand_in(number, std::move(*outcome));
    }
  }
  static Outcome outcome_of(Making& batch) {
    try {
      return {.batch = batch.finish(), .error = {}};
    } catch (...) {
      return {.batch = {}, .error = std::current_exception()};
    }
  }
  bool may_begin() const { return begun_ < end_ && begun_ < given_ + ahead_; }
  void begin() {
    newest_ = {.number = begun_++, .batch = nullptr};
    try {
      newest_.batch = begin_(newest_.number);
      room_.notify_all();  // the others share it
    } catch (...) {
      hand_in(newest_.number, {.batch = {}, .error = std::current_exception()});
    }
  }
  void hand_in(std::int64_t number, Outcome outcome) {
    done_.emplace(number, std::move(outcome));
    ready_.notify_all();
  }

  const std::int64_t end_;
  const int ahead_;
  const Begin begin_;
  std::mutex mutex_;
  std::condition_variable ready_, room_;
  std::map<std::int64_t, Outcome> done_;
  Numbered newest_;             ///< that was begun; those before it have no work left to take
  std::int64_t begun_, given_;  ///< numbers of the next ones
  std::atomic<bool> stopping_ = false;
  std::vector<std::thread> threads_;
};

struct LoaderOptions {
  int threads = 1;
  int ahead = 1;  ///< batches that are made, or begun, before they are asked for
  Collation collation;
};

/// Of images of one size.
class Loader : public LoaderOf<BatchInMaking> {
 public:
  /// Asked once for each batch, in order, by one thread at a time.
  using Plan = std::function<BatchPlan(std::int64_t number)>;
  Loader(std::int64_t first, std::int64_t count, const LoaderOptions& options, Plan plan)
      : LoaderOf{first, count, options.threads, options.ahead,
                 [plan = std::move(plan), collation = options.collation](std::int64_t number) {
                   return std::make_shared<BatchInMaking>(plan(number), collation);
                 }} {}
};

}  // namespace abl::tasks
