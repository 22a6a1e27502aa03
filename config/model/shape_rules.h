// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "config/json.h"
#include "config/trial_config.h"

namespace abl::config {

/// What does not fit together in the sizes of model and images.
void check_sizes(const ModelConfig& model, const DataConfig& data, std::vector<Problem>& problems);

/// Rules that several families share (Family::check_sizes). Patches divide the image, and are not too many.
void check_patches(const ModelConfig& model, int image_size, std::vector<Problem>& problems);
/// `heads` divides `dim`.
void check_heads(const ModelConfig& model, std::vector<Problem>& problems);
/// `stage_heads` has one entry for each stage, and it divides the stage's width, which doubles.
void check_stage_heads(const ModelConfig& model, std::vector<Problem>& problems);
/// Whether there is one entry for each stage.
bool check_length(const char* key, const std::vector<int>& values, const ModelConfig& model,
                  std::vector<Problem>& problems);

/// A problem of a key of the model.
template <class... Values>
void complain(std::vector<Problem>& problems, const std::string& key, fmt::format_string<Values...> message,
              Values&&... values) {
  problems.push_back({"model." + key, fmt::format(message, std::forward<Values>(values)...), {}});
}

}  // namespace abl::config
