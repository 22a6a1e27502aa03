// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>

#include "config/trial_config.h"

namespace abl::trainer {

/// Counts for many models in one process: a canonical model document a line in, a line out each, in order:
///   {"counts": {"params.all": n, "params.weights": n, "flops.macs": n, "flops.msf": n}} or {"error": "…"}
void describe_lines(std::istream& in, std::ostream& out);

/// One model for people: its parameters by name and shape, and the counts; with `json` the same as one
/// object.
void describe_model(const config::TrialConfig& trial, bool json, std::ostream& out);

}  // namespace abl::trainer
