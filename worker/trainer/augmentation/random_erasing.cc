// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/augmentation/random_erasing.h"

#include <cmath>

namespace abl::trainer {

std::optional<Erasure> draw_erasure(int width, int height, const RandomErasing& options,
                                    RandomStream& random) {
  if (random.uniform() >= options.probability) return std::nullopt;
  const double area = 1.0 * width * height;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = random.uniform(options.area_low, options.area_high) * area;
    const double aspect =
        std::exp(random.uniform(std::log(options.aspect_low), std::log(options.aspect_high)));
    const int h = static_cast<int>(std::nearbyint(std::sqrt(target * aspect)));
    const int w = static_cast<int>(std::nearbyint(std::sqrt(target / aspect)));
    if (w >= width || h >= height) continue;
    const int top = static_cast<int>(random.below(static_cast<std::uint64_t>(height - h + 1)));
    const int left = static_cast<int>(random.below(static_cast<std::uint64_t>(width - w + 1)));
    return Erasure{.rectangle = {left, top, w, h}, .noise_seed = random.next()};
  }
  return std::nullopt;
}

}  // namespace abl::trainer
