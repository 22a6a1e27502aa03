// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "ablate/v1/workers.pb.h"
#include "protocol/metric_source.h"
#include "worker/agent/trainer_output.h"
#include "worker/metrics/written_checkpoints.h"

namespace abl::agent {

/// Where the document of a command says that its numbers and checkpoints are, of which it does not speak.
struct CommandPlaces {
  std::vector<protocol::MetricSource> metrics{};
  std::string checkpoint{};
};
/// Throws: Error{kInvalidArgument} for what no sweep file made.
CommandPlaces command_places(const ablate::v1::Assign& assign);

/// What a command writes into the folder of its run: files that numbers are read from, and checkpoints
/// (docs/any-script.md). Thread: the run's.
class CommandFiles {
 public:
  static constexpr std::chrono::seconds kPatience{60};

  /// `checkpoint`: as in CommandPlaces; empty: it writes none.
  CommandFiles(std::filesystem::path folder, std::string checkpoint);

  /// Looks for what has come, a few times a second, less often where that takes long. Returns: whether any
  /// number came.
  bool look(TrainerOutput& output);
  /// Reads on to the ends of the files: nobody is left who writes. What takes longer than `patience`, a hole
  /// of a terabyte, is given up and counted as refused. `go_on`: called after each piece; false ends it.
  static void read_to_end(TrainerOutput& output, const std::function<bool()>& go_on,
                          std::chrono::milliseconds patience = kPatience);
  /// Says which checkpoint is there for the next attempt, the program being gone; with its digest where it
  /// may be taken elsewhere (`travels`). `was_killed`: perhaps while it wrote one.
  void say_last_checkpoint(TrainerOutput& output, bool was_killed, bool travels);

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  const std::filesystem::path folder_;
  metrics::WrittenCheckpoints checkpoints_;
  SteadyTime next_look_{};
};

}  // namespace abl::agent
