// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

namespace abl::scoring {

/// How the nearest training images vote. Source: Caron et al., Emerging properties in self-supervised vision
/// transformers (ICCV 2021), section 3.2, and facebookresearch/dino, eval_knn.py, whose temperature it is.
struct NeighbourVote {
  int neighbours = 20;  ///< of which it takes the most similar; the paper's tables have the best of 10, 20 …
  int classes = 0;
  double temperature = 0.07;
};

/// The classes, the one with most votes first: each neighbour votes for its label with weight
/// exp(similarity / temperature). Of equal sums the lower class comes first, after those with a vote those
/// without.
/// `similarities`: cosines, the highest first, at least as many as `neighbours`; `labels`: of the same
/// images. Throws: Error{kInvalidArgument} for fewer, another order, a label beyond the classes, a
/// temperature that is not above 0.
std::vector<int> vote(std::span<const float> similarities, std::span<const int> labels,
                      const NeighbourVote& options);

}  // namespace abl::scoring
