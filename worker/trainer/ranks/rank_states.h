// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "worker/trainer/ranks/rank_group.h"

namespace abl::ranks {

/// What every rank has of its own and a resumed run needs again: one row for each rank.
struct RankStates {
  torch::Tensor random;  ///< [ranks, bytes]: the processor's random numbers
  torch::Tensor sums;    ///< [ranks, 3]: loss, correct answers and images since they were last reported
};

/// Collective; `sums`: this rank's row.
RankStates gather_states(RankGroup& ranks, const torch::Tensor& sums);

/// Random numbers that differ between the ranks and depend on seed and step alone, and no sums: of a run that
/// begins at this step.
RankStates new_states(std::int64_t seed, int ranks, std::int64_t step);

/// Draws on the processor as the rank's row says from here on.
void draw_as(const RankStates& states, const RankGroup& ranks);

/// A GPU's random numbers belong to the step: they begin anew in each, and need not be kept. Nothing on the
/// CPU.
void draw_on_device(const RankGroup& ranks, torch::Device device, std::int64_t seed, std::int64_t step);

}  // namespace abl::ranks
