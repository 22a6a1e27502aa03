// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/trial_choices.h"
#include "models/counting/counter.h"
#include "models/counting/memory.h"
#include "models/counting/work.h"
#include "models/registry.h"

namespace abl::commands {

/// How the memory of a recipe's precision is counted.
models::Precision counted_as(config::Precision precision);

/// The work of one image by the modes of `counts_of` that begin with "flops.", conventions left out.
std::map<std::string, double> flops_of(const models::Work& work);

/// What is known of a model before it is trained, by the names of protocol/counts.h.
std::map<std::string, double> counts_of(const models::ModelOptions& options,
                                        const std::vector<models::PartCount>& parts);

}  // namespace abl::commands
