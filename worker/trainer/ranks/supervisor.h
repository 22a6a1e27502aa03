// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "worker/trainer/ranks/rank_output.h"

namespace abl::trainer {

/// How a run of several ranks ended, and with which exit code the trainer tells.
struct RunEnd {
  RankEnd end;
  int exit_code = 0;
};

/// The command line of a rank.
using RankCommand = std::function<std::vector<std::string>(int rank)>;

/// Starts the ranks of a run on this machine, says again what the first one says, and waits until all have
/// ended. When one fails the others are ended within seconds, and the reason is that of the rank which failed
/// first. When `stop` is raised the first rank is asked, and all stop after the same step. The ranks die with
/// the calling thread.
RunEnd supervise_ranks(int ranks, const RankCommand& command, Events& events, const std::atomic<bool>& stop);

}  // namespace abl::trainer
