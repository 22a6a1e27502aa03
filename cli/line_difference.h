// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "ablate/v1/sweeps.pb.h"

namespace abl::cli {

/// What differs between two texts, line by line, with three unchanged lines around it: `added`, `removed` and
/// `hunks` of the message. Lines that are there once in both and stand in the same order are matched first,
/// as `git diff --patience` does; a stretch of thousands of lines that has none of these is said as removed
/// and added as a whole, so that the cost is that of sorting the lines.
ablate::v1::SweepDifference line_difference(std::string_view before, std::string_view after);

}  // namespace abl::cli
