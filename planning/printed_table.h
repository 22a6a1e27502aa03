// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ablate/v1/sweeps.pb.h"
#include "planning/plan.h"
#include "storage/types.h"
#include "sweeps/sweep_spec.h"

namespace abl::planning {

/// A column of a sweep file as it is stored.
storage::Column stored_column(const sweeps::Column& column);

/// The table of a sweep as its file alone has it: settings, counts, what the paper prints, and no run.
ablate::v1::Table printed_table(const sweeps::SweepSpec& spec, const ModelCounter::Result& counts);

}  // namespace abl::planning
