// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace abl::models {

/// The ablated choices of a non-linear embedding to queries, keys and values (the roles). The paper's points,
/// of two layers: SNE shares none, P-SNE the last, F-SNE both and tells the roles apart by codes.
struct EmbeddingChoice {
  std::vector<std::int64_t> widths;  ///< of the hidden layers: one fewer than there are layers
  std::vector<bool> shared;          ///< of each layer, one to four: whether the three roles use the same
  std::int64_t code_size = 0;        ///< with a shared first layer, else 0: codes go into that one
  bool codes_over_blocks = true;     ///< one set of codes for the whole model, else one for each block
  double code_deviation = 0.02;      ///< codes start normally distributed around 0
  bool bias = true;

  bool operator==(const EmbeddingChoice&) const = default;
};

}  // namespace abl::models
