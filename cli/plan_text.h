// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ablate/v1/sweeps.pb.h"
#include "cli/terminal.h"

namespace abl::cli {

/// A plan for people: every row with params (in millions, as papers print them), FLOPs, the memory of a
/// training step, and trials; then totals and notes.
std::string plan_text(const ablate::v1::SweepPlan& plan, const Terminal& terminal);

}  // namespace abl::cli
