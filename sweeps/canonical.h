// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sweeps/sweep_spec.h"

namespace abl::sweeps {

/// The expanded spec as canonical JSON: rows by id with their resolved settings, their order, seeds, table
/// and resources. How the file wrote it (rows or factors, presets, comments) leaves no trace.
std::string canonical_spec(const SweepSpec& spec);

}  // namespace abl::sweeps
