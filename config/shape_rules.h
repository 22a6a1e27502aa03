// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "config/trial_config.h"
#include "config/trial_document.h"

namespace abl::config {

/// What has no meaning in one layer's attention: groups that do not divide, sharing that contradicts the
/// PROBE. `path` is where it was written. Dimensions that are not known (0) are not checked.
void check_attention(const AttentionConfig& attention, const ModelConfig& model, const std::string& path,
                     std::vector<Problem>& problems);

/// What does not fit together in the sizes of model and images.
void check_sizes(const ModelConfig& model, const DataConfig& data, std::vector<Problem>& problems);

}  // namespace abl::config
