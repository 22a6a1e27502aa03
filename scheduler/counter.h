// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "planning/plan.h"
#include "scheduler/coordinator.h"
#include "storage/read_pool.h"

namespace abl::scheduler {

/// Counts architectures (params, FLOPs) and keeps what is new in the store. Counting starts a program and
/// takes a second, so it has a thread of its own.
/// Thread: all methods, from any.
class Counter {
 public:
  using Job = std::function<void(storage::Database&, const planning::ModelCounter::Result&)>;

  Counter(const std::filesystem::path& store, planning::ModelCounter counter, Coordinator& coordinator);
  ~Counter() { stop(); }
  /// Ends the program that counts; what is not counted by now is missing.
  void stop() { stop_.request_stop(); }

  /// Counts `models` (canonical model documents; empty ones are left out), then calls `job`, which must not
  /// throw. Once `stop` is requested no program is started for it, and one that was ends.
  void count(std::vector<std::string> models, Job job, std::stop_token stop = {});
  /// More waits already than can be counted soon.
  bool full() { return pool_.full(); }
  /// Makes sure that the counts of a stored sweep are there, does `then` with them, and tells its watchers
  /// when new ones are.
  void fill(const std::string& sweep, std::vector<std::string> models, ChangeFeed& feed, Job then = {});

 private:
  planning::ModelCounter counter_;
  Coordinator& coordinator_;
  std::stop_source stop_;
  storage::ReadPool pool_;
};

}  // namespace abl::scheduler
