// SPDX-License-Identifier: Apache-2.0
#include "images/pillow_transform.h"

#include <gtest/gtest.h>

namespace abl::images {
namespace {

Image one_row(const std::vector<std::uint8_t>& grey) {
  Image image{static_cast<int>(grey.size()), 1, {}};
  for (const auto value : grey) image.pixels.insert(image.pixels.end(), 3, value);
  return image;
}

TEST(Shrink, LeavesAnImageOfTheSizeAskedForAlone) {
  const auto image = one_row({3, 200, 17, 90});
  EXPECT_EQ(shrink(image, 4, 1).pixels, image.pixels);
}

TEST(Shrink, WeighsPixelsByATriangleOverTwoOfTheNew) {
  // at half size the weights are 1 3 3 1; at an edge those that lie outside are left out
  const auto half = shrink(one_row({0, 0, 0, 80, 160, 0, 0, 0}), 4, 1);
  ASSERT_EQ(half.width, 4);
  EXPECT_EQ(half.pixels[0], 0);
  EXPECT_EQ(half.pixels[3], (80 * 3 + 160 * 1) / 8);
  EXPECT_EQ(half.pixels[6], (80 * 1 + 160 * 3) / 8);
  EXPECT_EQ(half.pixels[9], 0);
}

TEST(Shrink, KeepsAnEvenColourWhateverTheSizes) {
  Image image{37, 23, {}};
  for (int i = 0; i < 37 * 23; ++i) image.pixels.insert(image.pixels.end(), {10, 128, 255});
  const auto small = shrink(image, 11, 22);
  ASSERT_EQ(small.pixels.size(), std::size_t{3} * 11 * 22);
  for (std::size_t i = 0; i < small.pixels.size(); i += 3)
    ASSERT_EQ((std::vector<int>{small.pixels[i], small.pixels[i + 1], small.pixels[i + 2]}),
              (std::vector<int>{10, 128, 255}));
}

}  // namespace
}  // namespace abl::images
