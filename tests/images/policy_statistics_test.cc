// SPDX-License-Identifier: Apache-2.0
// Frequencies and moments of what policies draw, against what their definitions give.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <map>

#include "images/timm_mixing.h"
#include "images/timm_rand_augment.h"
#include "images/torchvision.h"
#include "tests/images/moments.h"

namespace abl::images {
namespace {

constexpr int kDraws = 50'000;
constexpr double kUniformKurtosis = 1.8;

RandomStream stream(std::int64_t seed) { return {seed, Purpose::kAugmentation}; }
double width_squared(double low, double high) { return (high - low) * (high - low); }

TEST(PolicyStatisticsTest, CropsHaveUniformAreaAndLogUniformAspect) {
  auto random = stream(1);
  const ResizedCrop ranges{.area_low = 0.08, .area_high = 0.5};  // small enough that every rectangle fits
  constexpr int kSide = 4000;  // large enough that whole pixels do not matter
  expect_moments(0.29, width_squared(0.08, 0.5) / 12, kUniformKurtosis, kDraws, [&] {
    const auto box = draw_resized_crop(kSide, kSide, ranges, random);
    return 1.0 * box.width * box.height / (1.0 * kSide * kSide);
  });
  expect_moments(0, width_squared(std::log(0.75), std::log(4.0 / 3)) / 12, kUniformKurtosis, kDraws, [&] {
    const auto box = draw_resized_crop(kSide, kSide, ranges, random);
    return std::log(1.0 * box.width / box.height);
  });
  expect_moments(0.5, 1.0 / 12, kUniformKurtosis, kDraws, [&] {
    const auto box = draw_resized_crop(kSide, kSide, ranges, random);
    return (box.left + 0.5) / (kSide - box.width + 1);
  });
}

TEST(PolicyStatisticsTest, CropsLieInTheImage) {
  auto random = stream(2);
  for (const auto& [width, height] : {std::pair{1, 1}, {3, 200}, {200, 3}, {37, 29}})
    for (int i = 0; i < 2000; ++i) {
      const auto box = draw_resized_crop(width, height, {}, random);
      ASSERT_TRUE(box.left >= 0 && box.top >= 0 && box.width >= 1 && box.height >= 1 &&
                  box.left + box.width <= width && box.top + box.height <= height)
          << width << "×" << height;
    }
}

TEST(PolicyStatisticsTest, ErasuresHaveTheirProbabilityAreaAndAspect) {
  auto random = stream(3);
  const RandomErasing options{.area_high = 0.2};  // every rectangle fits
  constexpr int kSide = 4000;
  int erased = 0;
  for (int i = 0; i < kDraws; ++i) erased += draw_erasure(kSide, kSide, options, random).has_value();
  expect_share(0.25, erased, kDraws);
  const auto rectangle = [&] {
    return draw_erasure(kSide, kSide, {.probability = 1, .area_high = 0.2}, random)->rectangle;
  };
  expect_moments(0.11, width_squared(0.02, 0.2) / 12, kUniformKurtosis, kDraws, [&] {
    const auto box = rectangle();
    return 1.0 * box.width * box.height / (1.0 * kSide * kSide);
  });
  expect_moments(0, width_squared(std::log(0.3), -std::log(0.3)) / 12, kUniformKurtosis, kDraws, [&] {
    const auto box = rectangle();
    return std::log(1.0 * box.height / box.width);
  });
}

TEST(PolicyStatisticsTest, MixUpAndCutMixHaveTheirShares) {
  auto random = stream(4);
  std::map<Mix::Kind, int> kinds;
  const Mixing options{.probability = 0.8, .switch_probability = 0.3};
  for (int i = 0; i < kDraws; ++i) ++kinds[draw_mix(224, 224, options, random).kind];
  expect_share(0.2, kinds[Mix::Kind::kNone], kDraws);
  expect_share(0.8 * 0.7, kinds[Mix::Kind::kMixUp], kDraws);
  expect_share(0.8 * 0.3, kinds[Mix::Kind::kCutMix], kDraws);
}

TEST(PolicyStatisticsTest, MixUpsLambdaIsBeta) {
  auto random = stream(5);
  const double alpha = 0.8, variance = 1 / (4 * (2 * alpha + 1)), kurtosis = 3 - 6 / (2 * alpha + 3);
  expect_moments(0.5, variance, kurtosis, kDraws, [&] {
    return draw_mix(224, 224, {.mixup_alpha = alpha, .cutmix_alpha = 0}, random).lambda;
  });
}

TEST(PolicyStatisticsTest, CutMixsLambdaIsTheAreaThatStays) {
  auto random = stream(6);
  for (int i = 0; i < 20'000; ++i) {
    const Mix mix = draw_mix(32, 20, {.mixup_alpha = 0}, random);
    ASSERT_EQ(mix.kind, Mix::Kind::kCutMix);
    ASSERT_TRUE(mix.box.left >= 0 && mix.box.top >= 0 && mix.box.left + mix.box.width <= 32 &&
                mix.box.top + mix.box.height <= 20);
    ASSERT_DOUBLE_EQ(mix.lambda, 1 - mix.box.width * mix.box.height / 640.0);
  }
  // a box in the middle is not cut off: the area is 1 - lambda but for whole pixels
  const auto box = cut_box(4000, 2000, 0.75, 2000, 1000);
  EXPECT_EQ(box, (Rectangle{1000, 500, 2000, 1000}));
  EXPECT_EQ(cut_box(4000, 2000, 0.75, 0, 1999), (Rectangle{0, 1499, 1000, 501}));
}

TEST(PolicyStatisticsTest, RandAugmentDrawsItsOperationsEquallyOften) {
  Image white = black(2, 2);
  for (auto& value : white.pixels) value = 255;
  auto random = stream(7);
  auto options = parse_rand_augment("rand-m5-n1-inc1");
  options.interpolation = Interpolation::kNearest;
  int inverted = 0, unchanged = 0;
  for (int i = 0; i < kDraws; ++i) {
    Image image = white;
    rand_augment(image, options, random);
    inverted += image.pixels == black(2, 2).pixels;
    unchanged += image.pixels == white.pixels;
  }
  expect_share(0.5 * 2 / 15, inverted, kDraws);  // invert, and solarise from 128 on
  // left alone, as are white, and moves by less than half a pixel: all operations but these two, posterise
  // and the half of brightness that darkens
  expect_share(0.5 + 0.5 * 11.5 / 15, unchanged, kDraws);
}

/// A line of 1000 pixels that know their place: how far translate_x has moved it; 0 for another operation.
int moved(const RandAugment& options, RandomStream& random) {
  Image line = black(1000, 1);
  for (int x = 0; x < line.width; ++x) {
    line.pixels[3 * x] = static_cast<std::uint8_t>(x / 256),
                    line.pixels[3 * x + 1] = static_cast<std::uint8_t>(x % 256);
    line.pixels[3 * x + 2] = 77;
  }
  rand_augment(line, options, random);
  const auto place = [&](int x) { return line.pixels[3 * x] * 256 + line.pixels[3 * x + 1]; };
  // colours that another operation has changed are not in order, or off by too little or too much
  const bool in_order = place(501) == place(500) + 1 && line.pixels[3 * 500 + 2] == 77;
  const int shift = place(500) - 500;
  return in_order && std::abs(shift) > 100 && std::abs(shift) <= 450 ? shift : 0;
}

TEST(PolicyStatisticsTest, RandAugmentDrawsMagnitudesAboutTheirMeanWithEitherSign) {
  auto random = stream(8);
  auto options = parse_rand_augment("rand-m6-mstd0.5-n1-p1");
  options.interpolation = Interpolation::kNearest;
  int right = 0, count = 0;
  expect_moments(6, 0.25, 3, 1500, [&] {
    for (;;)
      if (const int shift = moved(options, random); shift != 0) {
        right += shift > 0, ++count;
        return std::abs(shift) / 45.0;  // 0.45 of the width at magnitude 10
      }
  });
  expect_share(0.5, right, count);
}

TEST(PolicyStatisticsTest, ThreeAugmentChoosesEachAsOften) {
  auto random = stream(9);
  const Image picture{2, 1, {200, 10, 10, 10, 200, 10}};
  const ThreeAugment options{.jitter = {}};
  std::array<int, 3> chosen{};
  for (int i = 0; i < kDraws; ++i) {
    Image image = picture;
    three_augment(image, options, random);
    const bool grey = image.pixels[0] == image.pixels[1] && image.pixels[1] == image.pixels[2];
    ++chosen[grey ? 0 : image.pixels[0] == 55 && image.pixels[1] == 10 ? 1 : 2];
  }
  for (const int count : chosen) expect_share(1.0 / 3, count, kDraws);
}

TEST(PolicyStatisticsTest, JitterFactorsAreUniform) {
  auto random = stream(10);
  // 100·factor cut off: add half a byte back
  expect_moments(1, width_squared(0.6, 1.4) / 12, kUniformKurtosis, kDraws, [&] {
    Image image{1, 1, {100, 100, 100}};
    colour_jitter(image, {.brightness = 0.4}, random);
    return (image.pixels[0] + 0.5) / 100;
  });
}

}  // namespace
}  // namespace abl::images
