// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "config/json.h"
#include "config/trial_config.h"

namespace abl::config {

inline constexpr int kMostEmbeddingLayers = 4;

/// What is wrong with a text that should name the shared layers of an embedding; empty where nothing is.
std::string shared_error(const std::string& shared);

/// The shared layers that the kind stands for: none, the last, all.
std::string shared_by_kind(const EmbeddingSpelling& embedding);

/// Whether queries, keys and values share layer 1, where only codes tell them apart.
bool shares_first_layer(const EmbeddingSpelling& embedding);

/// A problem where the widths of the hidden layers are not known, or are given twice.
void check_widths(const EmbeddingSpelling& embedding, const std::string& path,
                  std::vector<Problem>& problems);

/// The one form of embeddings that are the same (equal widths as `width`, the shared layers in their shortest
/// text, the kind that stands for them), and from it what is computed. Leaves alone what is wrong.
void settle_embedding(EmbeddingSpelling& embedding);

}  // namespace abl::config
