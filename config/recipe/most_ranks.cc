// SPDX-License-Identifier: Apache-2.0
#include "config/recipe/most_ranks.h"

#include <algorithm>

#include "config/data/data_sets.h"

namespace abl::config {
namespace {

/// How many pairs of opposite places have one in [begin, end). They follow each other, so as many processes
/// have an image there.
std::int64_t pairs_in(std::int64_t begin, std::int64_t end, std::int64_t size) {
  const std::int64_t pairs = (size + 1) / 2;
  if (end <= pairs || begin >= pairs) return end - begin;
  return pairs - std::min(begin, size - end);
}

}  // namespace

std::int64_t most_ranks(std::int64_t size, std::int64_t parts) {
  const std::int64_t longest = (size + parts - 1) / parts, count = (size + longest - 1) / longest;
  const auto in_part = [&](std::int64_t part) {
    return pairs_in(part * longest, std::min(size, (part + 1) * longest), size);
  };
  const std::int64_t middle = ((size + 1) / 2 - 1) / longest;  // all others are as long as the first
  return std::min({in_part(0), in_part(middle), in_part(count - 1)});
}

std::int64_t known_batch(const TrialConfig& trial) {
  const std::int64_t batch = trial.recipe.batch, asked = trial.data.train_images,
                     images = asked - held_out_of(trial.data, asked);
  return images > 0 ? std::min(batch, images) : batch;
}

}  // namespace abl::config
