// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "config/json.h"
#include "config/trial_config.h"

namespace abl::config {

/// What does not fit together in the sizes of model and images.
void check_sizes(const ModelConfig& model, const DataConfig& data, std::vector<Problem>& problems);

}  // namespace abl::config
