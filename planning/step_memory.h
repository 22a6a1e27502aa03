// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "sweeps/sweep_spec.h"

namespace abl::planning {

/// Bytes that a training step of a row takes on each of its GPUs, at its peak; nothing where the trainer has
/// not counted what it follows from.
///   `counts`: canonical model document -> count (protocol/counts.h) -> value. `gpus`: as of a sweep.
std::optional<double> step_memory(const sweeps::Row& row,
                                  const std::map<std::string, std::map<std::string, double>>& counts,
                                  int gpus);

}  // namespace abl::planning
