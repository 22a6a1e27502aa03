// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "config/layer_shape.h"
#include "config/trial_config.h"
#include "config/trial_document.h"

namespace abl::config {

/// What has no meaning in one layer: groups that do not divide, sharing that contradicts the PROBE, charts
/// that are not there, hidden layers without width. `path` is where it was written. Sizes that are not known
/// are not checked.
void check_attention(const AttentionConfig& attention, const LayerShape& shape, const std::string& path,
                     std::vector<Problem>& problems);
void check_key(const KeyConfig& key, const LayerShape& shape, const std::string& path,
               std::vector<Problem>& problems);
void check_embedding(const EmbeddingConfig& embedding, const LayerShape& shape, const std::string& path,
                     std::vector<Problem>& problems);

/// What does not fit together in the layers of a whole model.
void check_layers(const ModelConfig& model, std::vector<Problem>& problems);

}  // namespace abl::config
