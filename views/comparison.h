// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ablate/v1/sweeps.pb.h"

namespace abl::views {

/// A difference counts where Welch's t-test, two-sided, gives less than this.
inline constexpr double kSignificance = 0.05;

/// Says of each metric cell whether it differs from the baseline's by more than the seeds' spread explains,
/// and which is the best of its column (`Cell.p`, `Cell.comparison`). Every page and every printed table
/// takes its colours and its bold from here. A row whose seeds diverged is never better and never the best.
void compare_cells(ablate::v1::Table& table);

}  // namespace abl::views
