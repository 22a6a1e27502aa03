// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "worker/trainer/tasks/batch.h"

namespace abl::tasks {

/// How many batches a loader may make before they are asked for: as many as its threads keep busy with, but
/// no more than 512 MiB hold, and at least one.
int batches_ahead(std::int64_t images, int image_size, int threads);

struct LoaderOptions {
  int threads = 1;
  int ahead = 1;  ///< batches that are made, or begun, before they are asked for
  Collation collation;
};

/// Makes batches `first` … first+count-1 in the background and hands them out in order. All threads share the
/// work on one batch, and go on to the next when no image of it is left. What a batch holds depends on its
/// plan alone, not on the threads. Thread: one consumer.
class Loader {
 public:
  /// Asked once for each batch, in order, by one thread at a time.
  using Plan = std::function<BatchPlan(std::int64_t number)>;
  Loader(std::int64_t first, std::int64_t count, const LoaderOptions& options, Plan plan);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch; nothing after the last. Throws what making it threw.
  std::optional<Batch> next();

 private:
  struct Outcome {
    Batch batch;
    std::exception_ptr error;
  };
  struct Numbered {
    std::int64_t number = 0;
    std::shared_ptr<BatchInMaking> batch;  ///< null before the first, and where its plan failed
  };
  void work();
  static Outcome outcome_of(BatchInMaking& batch);
  bool may_begin() const { return begun_ < end_ && begun_ < given_ + options_.ahead; }
  void begin();
  void hand_in(std::int64_t number, Outcome outcome);

  const std::int64_t end_;
  const LoaderOptions options_;
  const Plan plan_;
  std::mutex mutex_;
  std::condition_variable ready_, room_;
  std::map<std::int64_t, Outcome> done_;
  Numbered newest_;             ///< that was begun; those before it have no work left to take
  std::int64_t begun_, given_;  ///< numbers of the next ones
  std::atomic<bool> stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace abl::tasks
