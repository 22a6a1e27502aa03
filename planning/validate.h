// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ablate/v1/sweeps.pb.h"
#include "sweeps/sweep_spec.h"

namespace abl::planning {

/// The spec that a message's file holds. Throws: SweepFileError.
sweeps::SweepSpec parse(const ablate::v1::SweepFile& file);

/// How much a sweep file asks for, or all that is wrong with it: problems are part of the answer.
ablate::v1::ValidateResponse validate(const ablate::v1::SweepFile& file);

void add_problems(const sweeps::SweepFileError& error, ablate::v1::ValidateResponse& response);
sweeps::Problem problem_of(const ablate::v1::Problem& problem);

}  // namespace abl::planning
