// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "base/clock.h"

namespace abl::launchers {

/// When a program that ended is started again. Pure: it only counts.
class RestartPolicy {
 public:
  static constexpr int kQuickFailures = 5;         ///< in a row, then it is given up
  static constexpr Milliseconds kQuick{10'000};    ///< a life shorter than this is a quick failure
  static constexpr Milliseconds kFirstPause{250};  ///< doubled with each quick failure
  static constexpr Milliseconds kLongestPause{8'000};

  /// How long to wait before the next start; nothing: give up. Exit code 2 (bad input) is given up at once:
  /// it would end so again.
  std::optional<Milliseconds> ended(Milliseconds lived, const ChildExit& exit);
  int quick_failures() const { return quick_failures_; }

 private:
  int quick_failures_ = 0;
};

/// One program kept running, its output appended to a log file. Thread: one, which must last as long as the
/// program.
class SupervisedProgram {
 public:
  /// Does not start it yet.
  SupervisedProgram(std::string name, std::vector<std::string> argv, std::filesystem::path log);

  void start(Time now);
  /// Notices an end and starts the program again when its pause is over. Returns: a sentence about what
  /// happened, if anything did. Throws: Error with the last lines of its log when it is given up.
  std::optional<std::string> tick(Time now);
  /// Asks it to end, waits, insists. `hurry` is asked now and then and ends the waiting.
  void stop(Milliseconds grace, const std::function<bool()>& hurry);

 private:
  std::string end_of_log() const;

  std::string name_;
  std::vector<std::string> argv_;
  std::filesystem::path log_;
  RestartPolicy policy_;
  std::unique_ptr<ChildProcess> child_;
  Time started_{};
  std::optional<Time> restart_at_;
  std::uintmax_t log_start_ = 0;  // where this start's output begins
};

}  // namespace abl::launchers
