// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include <cstdint>

#include "worker/trainer/ranks/rank_group.h"

namespace abl::trainer {

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

/// Draws as the rank's row says from here on. On a GPU random numbers begin anew at `step`: their state is
/// not kept.
void draw_as(const RankStates& states, const RankGroup& ranks, torch::Device device, std::int64_t seed,
             std::int64_t step);

}  // namespace abl::trainer
