// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/augmentation/mixing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "worker/trainer/augmentation/distributions.h"

namespace abl::trainer {

Rectangle cut_box(int width, int height, double lambda, int x, int y) {
  const double side = std::sqrt(1 - lambda);
  const int w = static_cast<int>(width * side), h = static_cast<int>(height * side);
  const int left = std::clamp(x - w / 2, 0, width), right = std::clamp(x + (w + 1) / 2, 0, width);
  const int top = std::clamp(y - h / 2, 0, height), bottom = std::clamp(y + (h + 1) / 2, 0, height);
  return {left, top, right - left, bottom - top};
}

Mix draw_mix(int width, int height, const Mixing& options, RandomStream& random) {
  const bool may_mix = options.mixup_alpha > 0, may_cut = options.cutmix_alpha > 0;
  if (!may_mix && !may_cut)
    throw Error{
        Code::kInvalidArgument,
        fmt::format("mixing: the alphas of MixUp and CutMix are {} and {}; at least one must be above 0",
                    options.mixup_alpha, options.cutmix_alpha)};
  if (random.uniform() >= options.probability) return {};
  const bool cuts = may_cut && (!may_mix || random.uniform() < options.switch_probability);
  const double alpha = cuts ? options.cutmix_alpha : options.mixup_alpha;
  const double lambda = beta(random, alpha, alpha);
  if (lambda == 1) return {};
  if (!cuts) return {.kind = Mix::Kind::kMixUp, .lambda = lambda};
  const int y = static_cast<int>(random.below(static_cast<std::uint64_t>(height)));
  const int x = static_cast<int>(random.below(static_cast<std::uint64_t>(width)));
  const Rectangle box = cut_box(width, height, lambda, x, y);
  const double area = 1.0 * box.width * box.height;  // not the area drawn: whole pixels, and within the image
  return {.kind = Mix::Kind::kCutMix, .lambda = 1 - area / (1.0 * width * height), .box = box};
}

}  // namespace abl::trainer
