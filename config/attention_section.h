// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/trial_config.h"
#include "config/trial_document.h"

namespace abl::config {

/// Reads `model.attention` for `model.depth` layers: one mapping for all of them, a mapping with `layers` and
/// `elsewhere`, or a list with one mapping for each layer. Appends what is wrong with it, the shapes
/// included.
std::vector<AttentionConfig> read_attention(const Json& section, const ModelConfig& model,
                                            std::vector<Problem>& problems);

/// One mapping where all layers are equal, otherwise a list with one for each layer.
Json canonical_attention(const std::vector<AttentionConfig>& layers);
Json full_attention(const std::vector<AttentionConfig>& layers);

/// Letters in order of first use: each matrix bears the letter of the first of Q, K, V, P, W that uses it
/// ("AABBC" -> "QQVVW").
std::string canonical_share(const std::string& share);

/// "1-4,9" of `depth` layers -> a flag for each; "none" -> no layer. Nothing, with a message, where it is not
/// such a text.
std::optional<std::vector<bool>> parse_layers(const std::string& text, int depth, std::string& message);

}  // namespace abl::config
