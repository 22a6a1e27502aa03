// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/child_process.h"
#include "worker/trainer/ranks/rank_output.h"

namespace abl::trainer {

/// One rank as a program of its own, with what it prints. It dies with the thread that started it; the
/// destructor kills it. Thread: one.
class RankProcess {
 public:
  RankProcess(int rank, const std::vector<std::string>& argv, Events* events);
  ~RankProcess();
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  /// Reads what has come, without waiting; then looks whether the program has ended.
  void look();
  /// Asks it to stop at the end of a step. Heeded by the first rank.
  void ask_to_stop();
  void kill();

  int rank() const { return rank_; }
  const std::vector<int>& ends() const { return ends_; }  ///< to wait for: its stdout and stderr
  const RankOutput& output() const { return output_; }
  const std::optional<ChildExit>& exit() const { return exit_; }
  bool killed() const { return killed_; }  ///< by us
  /// Whether it ended, or said that it does, otherwise than as it should.
  bool failed() const;

 private:
  void read(int& end, void (RankOutput::*take)(std::string_view));

  const int rank_;
  RankOutput output_;
  std::vector<int> ends_;
  std::optional<ChildProcess> child_;
  std::optional<ChildExit> exit_;
  bool killed_ = false;
};

}  // namespace abl::trainer
