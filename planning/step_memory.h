// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "planning/trial_time.h"
#include "sweeps/sweep_spec.h"

namespace abl::planning {

/// Bytes that a training step of a row takes on each of its GPUs, at its peak; nothing where the trainer has
/// not counted what it follows from.
///   `counts`: canonical model document -> count (protocol/counts.h) -> value. `gpus`: as of a sweep.
std::optional<double> step_memory(const sweeps::Row& row,
                                  const std::map<std::string, std::map<std::string, double>>& counts,
                                  int gpus);

/// What a trial takes at most, by its parts: their sum is the bound. On a CPU "program", "step", "teacher",
/// "loader", "data" and "checkpoint" are the whole process's resident memory; on a GPU "program" (what CUDA
/// and its libraries take), "step" and "teacher" are the GPU's, since the rest is the host's. Beside them, at
/// either place, "neighbours" are the features of a task that looks for nearest ones. Nothing where
/// `step_memory` knows nothing.
///   `place`: where it runs. `base_bytes`: of the program before it builds a model, where that was measured.
///   `images`: of data sets of which somebody has said how many there are.
std::optional<std::map<std::string, double>> trial_memory(const sweeps::Row& row, const ModelCounts& counts,
                                                          int gpus, const Place& place,
                                                          std::optional<double> base_bytes,
                                                          const std::map<std::string, ImageCounts>& images);

}  // namespace abl::planning
