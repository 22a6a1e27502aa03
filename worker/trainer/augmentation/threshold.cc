// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/augmentation/threshold.h"

#include <algorithm>

namespace abl::trainer {

// No tables here: the compiler makes vector code of these loops, which it cannot of a look-up.

void invert(Image& image) {
  for (auto& value : image.pixels) value = static_cast<std::uint8_t>(255 - value);
}

void solarise(Image& image, int threshold) {
  if (threshold > 255) return;
  const auto from = static_cast<std::uint8_t>(std::max(0, threshold));
  for (auto& value : image.pixels) value = static_cast<std::uint8_t>(value < from ? value : 255 - value);
}

void solarise_add(Image& image, int add, int threshold) {
  const auto plus = static_cast<std::uint8_t>(std::min(255, add));
  for (auto& value : image.pixels) {
    const auto sum = static_cast<std::uint8_t>(value + plus);
    const auto raised = static_cast<std::uint8_t>(sum < value ? 255 : sum);
    value = value < threshold ? raised : value;
  }
}

void posterise(Image& image, int bits) {
  if (bits >= 8) return;
  const auto kept = static_cast<std::uint8_t>(0xFF << (8 - std::max(0, bits)));
  for (auto& value : image.pixels) value &= kept;
}

}  // namespace abl::trainer
