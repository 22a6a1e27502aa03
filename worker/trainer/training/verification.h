// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "worker/trainer/training/training.h"

namespace abl::training {

/// What running a stretch of a training again has shown.
struct Verification {
  struct Difference {
    std::string name;  ///< of a tensor of the checkpoint, or of a number beside them
    double largest = 0;
  };
  std::int64_t from = 0, to = 0;  ///< optimiser steps
  std::size_t compared = 0;       ///< tensors and numbers
  std::vector<Difference> different;
  std::map<std::int64_t, std::map<std::string, double>> points;  ///< that were measured, by step
  std::string
      other_machine;  ///< why bits may differ: the checkpoint is of another build, device, …; or empty
};

/// Trains a run up to `options.last_step` and says what it does to `events`. Returns: false when it was
/// stopped on request.
using TrainAgain = std::function<bool(const TrainingOptions& options, protocol::Events& events)>;

/// In this process, as one rank.
TrainAgain train_here(const std::atomic<bool>& stop);

/// Runs the training of `options` again by `train`, from `options.resume` (or from the start) to the step of
/// the checkpoint `to`, in a folder of its own that is removed afterwards, and compares all that the two
/// checkpoints hold. `train` has to take as many ranks as that checkpoint had. Throws: Error{kCancelled} when
/// stopped; Error{kAborted} where a number that is not finite ends it earlier this time; what reading the
/// checkpoints and training throw. `progress`: hears of each step that is reported, and of the last.
Verification verify(TrainingOptions options, const std::filesystem::path& to, const TrainAgain& train,
                    const std::function<void(std::int64_t step, std::int64_t last)>& progress = {});

}  // namespace abl::training
