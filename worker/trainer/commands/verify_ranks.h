// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "worker/trainer/commands/run_flags.h"
#include "worker/trainer/verification.h"

namespace abl::trainer {

/// Throws: Error{kFailedPrecondition} where the GPUs are not here that the run of the checkpoint `to` took,
/// of so many ranks; Error{kInvalidArgument} for one GPU where several ranks need one each.
void check_gpus(const std::filesystem::path& to, const std::string& device, int ranks);

/// Trains again as several ranks do: as many `ablate-trainer train` as there are, which end with this
/// process. It throws Error with the reason of the rank that failed first: kUnavailable where that may pass.
TrainAgain train_as_ranks(int ranks, const RunFlags& flags, const std::atomic<bool>& stop);

}  // namespace abl::trainer
