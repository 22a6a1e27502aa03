// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "config/trial_document.h"

namespace abl::config {

/// Of each hidden layer, whether they were given by `width` or by `widths`.
std::vector<int> hidden_widths(const EmbeddingConfig& embedding);

/// A problem where the widths of the hidden layers are not known, or are given twice.
void check_widths(const EmbeddingConfig& embedding, const std::string& path, std::vector<Problem>& problems);

/// The one form of embeddings that are the same: equal widths as `width`. Leaves alone what is wrong.
void settle_widths(EmbeddingConfig& embedding);

}  // namespace abl::config
