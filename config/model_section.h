// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "config/trial_config.h"
#include "config/trial_document.h"

namespace abl::config {

/// Reads the `model` section: the keys and the layer sections of its family, on top of a preset's. Appends
/// all problems, but not whether images fit (check_sizes).
ModelConfig read_model(const Json& section, std::vector<Problem>& problems);

/// The keys and layer sections of the model's family that are not as by default.
Json canonical_model(const ModelConfig& model);
/// All keys and layer sections of the model's family.
Json full_model(const ModelConfig& model);

}  // namespace abl::config
