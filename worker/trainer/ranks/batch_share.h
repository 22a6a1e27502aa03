// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace abl::ranks {

/// The places of a batch of `size` images that are a rank's, ascending: i where min(i, size-1-i) mod ranks is
/// the rank. An image and the one that it is mixed with, that of the opposite place, are on the same rank,
/// opposite to each other there too.
std::vector<std::int64_t> places_of(int rank, int ranks, std::int64_t size);

/// A rank's share of a step.
struct BatchShare {
  /// Images that go through the model together.
  struct Part {
    std::int64_t first = 0, size = 0;  ///< among the rank's images
    double weight = 1;                 ///< of their mean loss: the mean over the ranks is then the batch's
  };
  std::int64_t batch = 0;            ///< images of all ranks
  std::vector<std::int64_t> places;  ///< of this rank's images in the batch
  std::vector<Part> parts;           ///< on all ranks as many
};

/// Cuts a batch into `parts` as one rank would, and each part among the ranks.
/// Throws: Error{kInvalidArgument} when a rank would have no image in a part.
BatchShare share_batch(int rank, int ranks, std::int64_t size, int parts);

/// Threads of each rank, where the ranks of one machine share `threads`: at least one.
inline int thread_share(int threads, int ranks) { return std::max(1, threads / ranks); }

}  // namespace abl::ranks
