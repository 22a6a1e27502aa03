// SPDX-License-Identifier: Apache-2.0
#include "data/transform.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/data/one_image.h"

namespace abl::data {
namespace {

/// Every pixel different: red counts columns, green rows.
images::Image ramp(int width, int height) {
  images::Image image{width, height, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      image.pixels.insert(image.pixels.end(),
                          {static_cast<std::uint8_t>(x), static_cast<std::uint8_t>(y), 9});
  return image;
}
std::uint8_t red(const images::Image& image, int x, int y) {
  return image.pixels[3 * (static_cast<std::size_t>(y) * image.width + x)];
}
std::uint8_t green(const images::Image& image, int x, int y) {
  return image.pixels[3 * (static_cast<std::size_t>(y) * image.width + x) + 1];
}

images::Image view(const images::Image& image, const config::RecipeConfig& recipe, int size,
                   images::RandomStream& random) {
  config::DataConfig data;
  data.image_size = size;
  return Augmentation{recipe, data}(OneImage{image}, 0, random)->image;
}

images::RandomStream stream(std::uint64_t index) { return {1, images::Purpose::kAugmentation, {0, index}}; }

TEST(TransformTest, LeavesAnImageOfTheRightSizeAlone) {
  auto random = stream(0);
  EXPECT_EQ(view(ramp(8, 8), {}, 8, random).pixels, ramp(8, 8).pixels);
  EXPECT_EQ(centre_of(OneImage{ramp(8, 8)}, 0, {}, 8)->image.pixels, ramp(8, 8).pixels);
}

TEST(TransformTest, TakesTheCentreOfAWideImage) {
  const images::Image image = centre_of(OneImage{ramp(12, 8)}, 0, {}, 8)->image;
  EXPECT_EQ(red(image, 0, 0), 2);
  EXPECT_EQ(green(image, 0, 7), 7);
}

TEST(TransformTest, EvaluatesTheSamePartOfAnImageAtEverySize) {
  for (const auto& [size, side] : {std::pair{32, 36}, {64, 73}, {224, 256}, {384, 438}}) {
    config::RecipeConfig recipe;
    recipe.eval_crop_ratio = 0.875;
    const images::Image image = ramp(200, 150);
    const auto framing = frame_centre(200, 150, side, size, images::Interpolation::kBilinear);
    EXPECT_EQ(
        centre_of(OneImage{image}, 0, recipe, size)->image.pixels,
        framing.of({.image = image, .region = {.width = 200, .height = 150}, .width = 200, .height = 150})
            .pixels)
        << size;
  }
}

TEST(TransformTest, PaddedCropsShiftByAtMostThePaddingAndFillWithBlack) {
  config::RecipeConfig recipe;
  recipe.crop = config::Crop::kPad, recipe.crop_padding = 2;
  std::set<std::pair<int, int>> shifts;
  for (std::uint64_t i = 0; i < 400; ++i) {
    auto random = stream(i);
    const images::Image image = view(ramp(8, 8), recipe, 8, random);
    const int dx = red(image, 4, 4) - 4, dy = green(image, 4, 4) - 4;
    EXPECT_LE(std::abs(dx), 2);
    EXPECT_LE(std::abs(dy), 2);
    if (dx < 0) {
      EXPECT_EQ(image.pixels[3 * (4 * 8) + 2], 0) << "what lies outside is black";
    }
    shifts.insert({dx, dy});
  }
  EXPECT_EQ(shifts.size(), 25u) << "every shift occurs";
}

TEST(TransformTest, FlipsWithItsProbability) {
  config::RecipeConfig recipe;
  recipe.flip = 0.5;
  int flipped = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    auto random = stream(i);
    const images::Image image = view(ramp(8, 8), recipe, 8, random);
    EXPECT_TRUE(red(image, 0, 3) == 0 || red(image, 0, 3) == 7);
    flipped += red(image, 0, 3) == 7;
  }
  EXPECT_NEAR(flipped, 500, 65) << "four standard deviations of a fair coin";
}

TEST(TransformTest, AViewDependsOnItsStreamAlone) {
  config::RecipeConfig recipe;
  recipe.crop = config::Crop::kResized, recipe.flip = 0.5;
  auto one = stream(5), again = stream(5), other = stream(6);
  const auto seen = view(ramp(40, 30), recipe, 16, one);
  EXPECT_EQ(seen.width, 16);
  EXPECT_EQ(seen.height, 16);
  EXPECT_EQ(seen.pixels, view(ramp(40, 30), recipe, 16, again).pixels);
  EXPECT_NE(seen.pixels, view(ramp(40, 30), recipe, 16, other).pixels);
}

TEST(TransformTest, EveryAugmentationOfARecipeChangesTheView) {
  const auto view_with = [](auto set) {
    config::RecipeConfig recipe;
    recipe.crop = config::Crop::kResized;
    set(recipe);
    config::DataConfig data;
    data.image_size = 16;
    auto random = stream(3);
    return Augmentation{recipe, data}(OneImage{ramp(200, 150)}, 0, random).value();
  };
  using Recipe = config::RecipeConfig;
  const auto plain = view_with([](Recipe&) {});
  EXPECT_FALSE(plain.erasure);
  EXPECT_NE(view_with([](Recipe& r) { r.color_jitter = 0.5; }).image.pixels, plain.image.pixels);
  EXPECT_NE(view_with([](Recipe& r) { r.appearance = config::Appearance::kThreeAugment; }).image.pixels,
            plain.image.pixels);
  EXPECT_NE(view_with([](Recipe& r) { r.randaugment = "rand-m9-p1"; }).image.pixels, plain.image.pixels);
  EXPECT_NE(view_with([](Recipe& r) { r.interpolation = config::Resampling::kBicubic; }).image.pixels,
            plain.image.pixels);
  EXPECT_NE(view_with([](Recipe& r) { r.crop_area = 0.9; }).image.pixels, plain.image.pixels);
  const auto erased = view_with([](Recipe& r) { r.random_erasing = 1; });
  EXPECT_EQ(erased.image.pixels, plain.image.pixels) << "noise comes after normalisation";
  EXPECT_TRUE(erased.erasure);
}

TEST(RandomStreamTest, IsUniformAndDiffersByPurpose) {
  images::RandomStream stream{3, images::Purpose::kOrder};
  std::vector<int> counts(10);
  for (int i = 0; i < 100'000; ++i) ++counts[stream.below(10)];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 400);
  EXPECT_NE(images::RandomStream(3, images::Purpose::kOrder).next(),
            images::RandomStream(3, images::Purpose::kAugmentation).next());
  EXPECT_NE(images::RandomStream(3, images::Purpose::kOrder).next(),
            images::RandomStream(4, images::Purpose::kOrder).next());
}

}  // namespace
}  // namespace abl::data
