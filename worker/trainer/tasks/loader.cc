// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/loader.h"

#include <algorithm>
#include <utility>

namespace abl::tasks {
namespace {

constexpr std::int64_t kQueueBytes = std::int64_t{512} << 20;

}  // namespace

int batches_ahead(std::int64_t images, int image_size, int threads) {
  const std::int64_t bytes = std::max<std::int64_t>(1, images * 3 * image_size * image_size);
  return static_cast<int>(std::clamp<std::int64_t>(kQueueBytes / bytes, 1, 2 * std::max(1, threads) + 2));
}

Loader::Loader(std::int64_t first, std::int64_t count, const LoaderOptions& options, Plan plan)
    : end_{first + count}, options_{options}, plan_{std::move(plan)}, begun_{first}, given_{first} {
  for (int i = 0; i < std::max(1, options_.threads); ++i) threads_.emplace_back([this] { work(); });
}

Loader::~Loader() {
  {
    const std::scoped_lock lock{mutex_};
    stopping_ = true;
  }
  room_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Loader::work() {
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

Loader::Outcome Loader::outcome_of(BatchInMaking& batch) {
  try {
    return {.batch = batch.finish(), .error = {}};
  } catch (...) {
    return {.batch = {}, .error = std::current_exception()};
  }
}

void Loader::begin() {
  newest_ = {.number = begun_++, .batch = nullptr};
  try {
    newest_.batch = std::make_shared<BatchInMaking>(plan_(newest_.number), options_.collation);
    room_.notify_all();  // the others share it
  } catch (...) {
    hand_in(newest_.number, {.batch = {}, .error = std::current_exception()});
  }
}

void Loader::hand_in(std::int64_t number, Outcome outcome) {
  done_.emplace(number, std::move(outcome));
  ready_.notify_all();
}

std::optional<Batch> Loader::next() {
  std::unique_lock lock{mutex_};
  if (given_ >= end_) return std::nullopt;
  ready_.wait(lock, [&] { return done_.contains(given_); });
  Outcome outcome = std::move(done_.extract(given_++).mapped());
  lock.unlock();
  room_.notify_all();
  if (outcome.error) std::rethrow_exception(outcome.error);
  return std::move(outcome.batch);
}

}  // namespace abl::tasks
