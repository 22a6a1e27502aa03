// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "protocol/events.h"
#include "worker/trainer/commands/run_flags.h"
#include "worker/trainer/ranks/supervisor.h"
#include "worker/trainer/training/training.h"
#include "worker/trainer/training/verification.h"

namespace abl::commands {

/// What a command line says of ranks. A trainer with several starts them as its own command line with the
/// hidden flags added: a program that is told its rank is one of them.
struct RankFlags {
  int ranks = 1;           ///< of all machines
  int rank = -1;           ///< hidden; -1: not told
  std::string rendezvous;  ///< hidden: HOST:PORT of the store
  ranks::NodePlace node;   ///< hidden

  bool starts_ranks() const { return ranks > 1 && rank < 0; }
  bool is_rank() const { return rank >= 0; }
  bool several_nodes() const { return node.nodes > 1; }
  /// Of this machine.
  int local_ranks() const { return several_nodes() ? node.local_ranks : ranks; }
};

void declare_rank_flags(CLI::App& app, RankFlags& flags);

/// Makes `options` those of the rank: its device, its share of the threads, its place among the others, for
/// which it waits. Does nothing where there is one rank alone.
void take_place(const RankFlags& flags, training::TrainingOptions& options);

/// Starts this program once for each rank, by `arguments` (what follows the program's name; they say how many
/// ranks there are) and what makes it that rank, and keeps the store where they meet. `events` hears what the
/// first one says, up to its end. SIGTERM and SIGINT stop all of them after the same step.
/// `place`: of a run over several machines.
ranks::RunEnd run_ranks(int ranks, const std::vector<std::string>& arguments, protocol::Events& events,
                        const ranks::NodePlace& place = {});

/// Trains by this program's own command line in each rank and says what comes of it. Returns: the exit code.
int train_with_ranks(const RankFlags& flags, const std::string& device, protocol::Events& events);

/// Throws: Error{kFailedPrecondition} where the GPUs are not here that the run of the checkpoint `to` took,
/// of so many ranks; Error{kInvalidArgument} for one GPU where several ranks need one each.
void check_gpus(const std::filesystem::path& to, const std::string& device, int ranks);

/// Trains again as several ranks do: as many `ablate-trainer train` as there are, which end with this
/// process. It throws Error with the reason of the rank that failed first: kUnavailable where that may pass.
training::TrainAgain train_as_ranks(int ranks, const RunFlags& flags, const std::atomic<bool>& stop);

}  // namespace abl::commands
