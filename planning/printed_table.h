// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ablate/v1/sweeps.pb.h"
#include "planning/plan.h"
#include "sweeps/sweep_spec.h"

namespace abl::planning {

/// The table of a sweep as its file alone has it: settings, counts, what the paper prints, and no run.
ablate::v1::Table printed_table(const sweeps::SweepSpec& spec, const ModelCounter::Result& counts);

}  // namespace abl::planning
