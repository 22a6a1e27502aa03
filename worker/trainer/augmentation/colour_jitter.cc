// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/augmentation/colour_jitter.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "worker/trainer/augmentation/colour.h"

namespace abl::trainer {
namespace {

std::optional<double> factor(double strength, RandomStream& random) {
  if (strength <= 0) return std::nullopt;
  return random.uniform(std::max(0.0, 1 - strength), 1 + strength);
}

}  // namespace

void colour_jitter(Image& image, const ColourJitter& jitter, RandomStream& random) {
  std::array<int, 4> order{0, 1, 2, 3};
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  const auto bright = factor(jitter.brightness, random), contrasted = factor(jitter.contrast, random),
             saturated = factor(jitter.saturation, random);
  const double turn = jitter.hue > 0 ? random.uniform(-jitter.hue, jitter.hue) : 0;
  for (const int part : order) {
    if (part == 0 && bright) brightness(image, static_cast<float>(*bright));
    if (part == 1 && contrasted) contrast(image, static_cast<float>(*contrasted));
    if (part == 2 && saturated) saturation(image, static_cast<float>(*saturated));
    if (part == 3 && jitter.hue > 0) hue(image, turn);
  }
}

}  // namespace abl::trainer
