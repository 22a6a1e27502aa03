// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/trial_config.h"

namespace abl::config {

/// "1-4,9" of `count` layers -> a flag for each; "none" -> no layer. Nothing, with a message, where it is not
/// such a text; `owner` is what has the layers. A count of 0 is one that is not known.
std::optional<std::vector<bool>> parse_layers(const std::string& text, int count, std::string& message,
                                              std::string_view owner = "the model");

/// The shortest text that `parse_layers` reads as these flags.
std::string layers_text(const std::vector<bool>& chosen);

/// For each layer of an embedding whether queries, keys and values share it. None does where the text is
/// wrong.
std::vector<bool> shared_layers(const EmbeddingConfig& embedding);

}  // namespace abl::config
