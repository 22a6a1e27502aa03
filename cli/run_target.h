// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "cli/source.h"

namespace abl::cli {

/// What the argument RUN of a command may be.
inline constexpr const char* kRunTarget = "A run's number, or SWEEP/ROW/SEED for the newest run of a trial";

/// The run that a user names so. Throws: Error{kNotFound} naming the nearest row, or the seeds that there
/// are; Error{kFailedPrecondition} where the trial has no run yet; Error{kInvalidArgument} for what is
/// neither.
std::uint32_t run_of(Source& source, const std::string& text);

}  // namespace abl::cli
