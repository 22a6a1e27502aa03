// SPDX-License-Identifier: Apache-2.0
#include "models/dense/mask_rcnn/matching.h"

#include <torch/utils.h>

#include <algorithm>

namespace abl::models {

using torch::Tensor;

Tensor match(const Tensor& overlaps, const MatchOptions& options) {
  const auto [best, thing] = overlaps.max(0);
  auto matches = thing.masked_fill(best < options.low, kBackground);
  matches.masked_fill_((best >= options.low).logical_and_(best < options.high), kUndecided);
  if (!options.keeps_best) return matches;
  const auto of_thing = std::get<0>(overlaps.max(1, /*keepdim=*/true));
  return torch::where((overlaps == of_thing).any(0), thing, matches);
}

Choose choose_by(at::Generator generator) {
  return [generator = std::move(generator)](std::size_t, std::int64_t count, std::int64_t chosen) {
    return torch::randperm(count, generator, torch::kLong).narrow(0, 0, chosen);
  };
}

Sample sample(const Tensor& labels, const SampleOptions& options, std::size_t image, const Choose& choose) {
  const auto chosen = [&](const Tensor& among, std::int64_t most) {
    const auto count = among.size(0);
    const auto some = choose(image, count, std::min(count, most)).to(among.device());
    return std::get<0>(among.index_select(0, some).sort());
  };
  const auto most_things =
      static_cast<std::int64_t>(static_cast<double>(options.count) * options.share_of_things);
  const auto things = chosen((labels >= 1).nonzero().squeeze(1), most_things);
  return {.things = things,
          .background = chosen((labels == 0).nonzero().squeeze(1), options.count - things.size(0))};
}

}  // namespace abl::models
