// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/augmentation/sharpness.h"

#include "worker/trainer/augmentation/blend.h"

namespace abl::trainer {

void sharpness(Image& image, float factor) {
  if (image.width < 3 || image.height < 3) return;
  const std::size_t bytes = image.row_bytes();
  std::vector<std::uint16_t> columns(bytes);
  std::vector<std::uint8_t> above(image.row(0), image.row(0) + bytes), here(bytes), smooth(bytes);
  for (int y = 1; y + 1 < image.height; ++y) {
    std::uint8_t* row = image.row(y);
    const std::uint8_t* below = image.row(y + 1);
    here.assign(row, row + bytes);  // the row is overwritten, and the next one needs it
    for (std::size_t i = 0; i < bytes; ++i)
      columns[i] = static_cast<std::uint16_t>(above[i] + here[i] + below[i]);
    for (std::size_t i = 3; i + 3 < bytes; ++i) {
      // at most 13·255. Pillow adds 1/2 to a sum of 13ths in floating point, which never comes near a whole
      // number
      const auto sum = static_cast<std::uint16_t>(columns[i - 3] + columns[i] + columns[i + 3] + 4 * here[i]);
      smooth[i] = static_cast<std::uint8_t>(static_cast<std::uint16_t>(sum + 6) / 13);
    }
    blend(smooth.data() + 3, here.data() + 3, factor, row + 3, bytes - 6);
    above.swap(here);
  }
}

}  // namespace abl::trainer
