// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/named_path.h"
#include "launchers/supervised_program.h"

namespace abl::launchers {

inline constexpr const char *kSchedulerProgram = "ablate-scheduler", *kWorkerProgram = "ablate-worker";

/// What the scheduler and the worker of one machine are started with.
struct LocalOptions {
  std::filesystem::path programs;  ///< the folder that both programs are in
  std::filesystem::path home;  ///< of the worker, with a folder for its runs; the logs of both go to `logs`
  std::filesystem::path store, socket;  ///< of the scheduler
  std::uint16_t http_port = 0;          ///< of its dashboard
  int slots = 0, threads = 0;           ///< of the worker; 0: it decides
  NamedPaths data, weights, plugins;
  std::filesystem::path webhooks{};  ///< a file; empty: nobody is told what happens
  bool allow_commands = false;
  LogFormat log_format = LogFormat::kText;  ///< of both
};

std::vector<std::string> scheduler_argv(const LocalOptions& options);
std::vector<std::string> worker_argv(const LocalOptions& options);

/// A scheduler and a worker as children of this process, started again when they die. Thread: one, which must
/// last as long as they do.
class LocalMachine {
 public:
  /// Starts nothing yet.
  explicit LocalMachine(const LocalOptions& options);

  void start_scheduler(Time now) { scheduler_.start(now); }
  void start_worker(Time now) { worker_.start(now); }
  /// Notices what ended and starts it again in time; `say` gets a sentence for whatever happened.
  /// Throws: Error with the last lines of its log where a program keeps ending.
  void tick(Time now, const std::function<void(const std::string&)>& say);
  /// Stops the worker, whose trainers write a checkpoint, then the scheduler (SupervisedProgram::stop).
  void stop(const std::function<bool()>& hurry);

 private:
  SupervisedProgram scheduler_, worker_;
};

}  // namespace abl::launchers
