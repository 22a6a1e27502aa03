// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "images/dino.h"
#include "images/pillow_transform.h"
#include "tests/images/moments.h"

namespace abl::images {
namespace {

RandomStream view_stream(std::int64_t seed) { return {seed, Purpose::kAugmentation}; }

/// Red says the column, green the row.
Image map_of_places(int side) {
  Image image = black(side, side);
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x) {
      image.row(y)[3 * x] = static_cast<std::uint8_t>(x);
      image.row(y)[3 * x + 1] = static_cast<std::uint8_t>(y);
    }
  return image;
}

/// Crops alone.
MultiCrop bare() {
  MultiCrop options{.global_size = 64, .local_size = 24, .locals = 5};
  options.flip = options.jitter_probability = options.grayscale = options.solarise = 0;
  options.first_blur = options.second_blur = options.local_blur = 0;
  return options;
}

/// How much of the map of places a view shows.
double area_of(const Image& view, int side) {
  const auto extent = [&](const std::uint8_t* first, const std::uint8_t* last) {
    return std::abs(*last - *first) * view.width /
           (view.width - 1.0);  // between the outermost pixels' middles
  };
  const auto *left = view.row(view.height / 2), *top = view.row(0) + 1;
  return extent(left, left + 3 * (view.width - 1)) * extent(top, view.row(view.height - 1) + 1) / side / side;
}

TEST(MultiCropTest, ViewsHaveTheirSizesAndAreas) {
  constexpr int kSide = 250;
  const auto image = map_of_places(kSide);
  for (const bool flips : {false, true}) {
    auto options = bare();
    options.flip = flips;
    auto random = view_stream(1);
    double smallest_global = 1, largest_local = 0;
    for (int i = 0; i < 200; ++i) {
      const auto views = multi_crop(image, options, random);
      ASSERT_EQ(views.globals.size(), 2u);
      ASSERT_EQ(views.locals.size(), 5u);
      for (const auto& view : views.globals) {
        ASSERT_EQ(std::pair(view.width, view.height), std::pair(64, 64));
        EXPECT_EQ(view.row(9)[0] > view.row(9)[3 * 63], flips);
        EXPECT_GE(area_of(view, kSide), 0.37);
        smallest_global = std::min(smallest_global, area_of(view, kSide));
      }
      for (const auto& view : views.locals) {
        ASSERT_EQ(std::pair(view.width, view.height), std::pair(24, 24));
        EXPECT_GE(area_of(view, kSide), 0.04);
        EXPECT_LE(area_of(view, kSide), 0.43);
        largest_local = std::max(largest_local, area_of(view, kSide));
      }
    }
    EXPECT_LT(smallest_global, 0.45) << "up to the bounds";
    EXPECT_GT(largest_local, 0.37);
  }
}

TEST(MultiCropTest, ACropIsThatOfAnImageCutAndResized) {
  const auto image = map_of_places(97);
  const auto options = bare();
  auto random = view_stream(2), again = view_stream(2);
  const auto views = multi_crop(image, options, random);
  const auto expected = [&](const ResizedCrop& ranges, int size) {
    const auto part = draw_resized_crop(97, 97, ranges, again);
    for (int skipped = 0; skipped < 4; ++skipped) again.uniform();  // whether anything else is done
    return resize(crop(image, part.left, part.top, part.width, part.height), size, size,
                  Interpolation::kBicubic);
  };
  EXPECT_EQ(views.globals[0].pixels, expected(options.global, 64).pixels);
  EXPECT_EQ(views.globals[1].pixels, expected(options.global, 64).pixels);
  EXPECT_EQ(views.locals[0].pixels, expected(options.local, 24).pixels);
}

TEST(MultiCropTest, DependsOnItsStreamAlone) {
  const auto image = map_of_places(120);
  auto one = view_stream(3), same = view_stream(3), other = view_stream(4);
  const auto first = multi_crop(image, {}, one), again = multi_crop(image, {}, same),
             different = multi_crop(image, {}, other);
  EXPECT_EQ(first.locals.size(), 8u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(first.globals[i].pixels, again.globals[i].pixels);
    EXPECT_NE(first.globals[i].pixels, different.globals[i].pixels);
  }
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(first.locals[i].pixels, again.locals[i].pixels);
  EXPECT_NE(first.locals[0].pixels, first.locals[1].pixels);
}

bool is_grey(const Image& image) {
  for (std::size_t i = 0; i < image.pixels.size(); i += 3)
    if (image.pixels[i] != image.pixels[i + 1] || image.pixels[i] != image.pixels[i + 2]) return false;
  return true;
}

TEST(MultiCropTest, EachChangeHasItsShareOfViews) {
  constexpr int kDraws = 1500;
  const auto plain = filled(12, 12, {250, 240, 40});
  auto lined = plain;  // what is blurred has other bytes than these two
  for (int y = 0; y < 12; y += 2)
    for (int x = 0; x < 12; ++x) lined.row(y)[3 * x] = 100;
  auto options = bare();
  options.global = options.local = {.area_low = 1, .area_high = 1, .aspect_low = 1, .aspect_high = 1};
  options.global_size = options.local_size = 12, options.locals = 1;
  const auto share = [&](const MultiCrop& changed, const Image& image, std::size_t which, const auto& is_so) {
    auto random = view_stream(5);
    int count = 0;
    for (int i = 0; i < kDraws; ++i) {
      const auto views = multi_crop(image, changed, random);
      count += is_so(which < 2 ? views.globals[which] : views.locals[0]);
    }
    return count;
  };
  const auto is_changed = [&](const Image& view) { return view.pixels != plain.pixels; };
  const auto is_blurred = [&](const Image& view) {
    return std::ranges::any_of(view.pixels, [](auto byte) { return byte > 101 && byte < 239; });
  };
  for (const std::size_t which : {0, 1, 2}) {
    auto one = options;
    one.grayscale = 0.2;
    expect_share(0.2, share(one, plain, which, is_grey), kDraws);
    one.grayscale = 0, one.jitter_probability = 0.8;
    expect_share(0.8, share(one, plain, which, is_changed), kDraws);
    one.jitter_probability = 0, one.solarise = 0.2;
    if (which == 1)
      expect_share(0.2, share(one, plain, which, is_changed), kDraws);
    else
      EXPECT_EQ(share(one, plain, which, is_changed), 0) << "the second global view alone";
    one.solarise = 0, one.blur_low = 1;  // far enough that it shows
    one.first_blur = 1, one.second_blur = 0.1, one.local_blur = 0.5;
    const double blurred = which == 0 ? 1 : which == 1 ? 0.1 : 0.5;
    if (blurred == 1)
      EXPECT_EQ(share(one, lined, which, is_blurred), kDraws);
    else
      expect_share(blurred, share(one, lined, which, is_blurred), kDraws);
    one.blur_low = one.blur_high = 0;
    EXPECT_EQ(share(one, lined, which, is_blurred), 0) << "small images have none";
  }
}

TEST(MultiCropTest, AnImageOfOnePixelHasViews) {
  auto random = view_stream(6);
  const auto views = multi_crop(filled(1, 1, {9, 8, 7}), {.global_size = 32, .local_size = 16}, random);
  EXPECT_EQ(views.globals[0].width, 32);
  EXPECT_EQ(views.locals[7].height, 16);
}

}  // namespace
}  // namespace abl::images
