// SPDX-License-Identifier: Apache-2.0
// What needs no reference: refusals, and what an operation must leave alone.
#include <gtest/gtest.h>

#include "base/error.h"
#include "images/pillow_enhance.h"
#include "images/pillow_ops.h"
#include "images/timm_mixing.h"
#include "images/timm_rand_augment.h"
#include "images/torchvision.h"
#include "tests/images/named_operation.h"

namespace abl::images {
namespace {

Image noise(int width, int height, std::int64_t seed = 0) {
  RandomStream random{seed, Purpose::kAugmentation};
  Image image = black(width, height);
  for (auto& value : image.pixels) value = static_cast<std::uint8_t>(random.below(256));
  return image;
}

const std::vector<std::pair<int, int>> kSizes{{1, 1},  {1, 2}, {2, 1},   {2, 2}, {1, 17},
                                              {17, 1}, {3, 3}, {16, 16}, {17, 5}};

TEST(EdgeTest, NeutralArgumentsLeaveImagesOfEverySizeAlone) {
  const std::vector<std::pair<std::string, Words>> neutral{{"brightness", {"1"}},
                                                           {"contrast", {"1"}},
                                                           {"saturation", {"1"}},
                                                           {"sharpness", {"1"}},
                                                           {"solarise", {"256"}},
                                                           {"solarise_add", {"0"}},
                                                           {"posterise", {"8"}},
                                                           {"rotate", {"360", "bicubic"}},
                                                           {"shear_x", {"0", "bilinear"}},
                                                           {"shear_y", {"0", "nearest"}},
                                                           {"translate", {"0", "0", "bicubic"}},
                                                           {"box_gaussian_blur", {"0"}},
                                                           {"gaussian_blur", {"1", "2"}},
                                                           {"pad", {"0", "0", "0", "0"}},
                                                           {"pad_reflected", {"0", "0", "0", "0"}},
                                                           {"colour_jitter", {"0", "0", "0", "0", "1"}}};
  for (const auto& [width, height] : kSizes) {
    const Image image = noise(width, height);
    for (const auto& [operation, arguments] : neutral) {
      const Image out = apply_named(operation, image, arguments);
      EXPECT_EQ(out.pixels, image.pixels) << operation << " of " << width << "×" << height;
      EXPECT_EQ(out.width, width);
      EXPECT_EQ(out.height, height);
    }
  }
}

TEST(EdgeTest, EveryRandAugmentKeepsTheSizeOfImagesOfEverySize) {
  for (const auto& [width, height] : kSizes)
    for (int seed = 0; seed < 40; ++seed) {
      const Image out =
          apply_named("rand_augment", noise(width, height), {"rand-m10-n3-p1-mstd3", std::to_string(seed)});
      EXPECT_EQ(out.width, width);
      EXPECT_EQ(out.height, height);
      EXPECT_EQ(out.pixels.size(), std::size_t{3} * width * height);
    }
}

TEST(EdgeTest, BlursKeepAConstantImage) {
  Image image = black(20, 13);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = std::array{255, 7, 128}[i % 3];
  for (const double sigma : {0.1, 0.35, 1.0, 2.0}) {
    EXPECT_EQ(gaussian_blur(image, 11, sigma).pixels, image.pixels) << sigma;
    EXPECT_EQ(box_gaussian_blur(image, sigma).pixels, image.pixels) << sigma;
  }
}

TEST(EdgeTest, FlippingTwiceOrTurningFourTimesIsNothing) {
  const Image image = noise(12, 12);
  Image flipped = image;
  flip(flipped);
  EXPECT_NE(flipped.pixels, image.pixels);
  flip(flipped);
  EXPECT_EQ(flipped.pixels, image.pixels);
  Image turned = image;
  for (int i = 0; i < 4; ++i) turned = apply_named("rotate", turned, {"90", "nearest"});
  EXPECT_EQ(turned.pixels, image.pixels);
}

template <class Call>
void expect_refused(Call call, const std::string& part) {
  try {
    call();
    ADD_FAILURE() << "not refused: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    EXPECT_NE(std::string{error.what()}.find(part), std::string::npos) << error.what();
  }
}

TEST(EdgeTest, RefusesWhatCannotBeDone) {
  const Image image = noise(5, 9);
  expect_refused([&] { gaussian_blur(image, 11, 1); },
                 "an image of 5×9 pixels is too small for a kernel of 11");
  expect_refused([&] { gaussian_blur(image, 4, 1); }, "expected an odd kernel");
  expect_refused([&] { gaussian_blur(image, 3, 0); }, "a sigma above 0");
  expect_refused([&] { pad_reflected(image, 5, 0, 0, 0); }, "needs a larger image than 5×9");
  RandomStream random{0, Purpose::kAugmentation};
  expect_refused([&] { draw_mix(5, 9, {.mixup_alpha = 0, .cutmix_alpha = 0}, random); },
                 "at least one must be above 0");
}

TEST(EdgeTest, APolicyDependsOnItsStreamAlone) {
  const Image image = noise(16, 16);
  for (const std::string policy : {"rand_augment", "three_augment"}) {
    const std::string kind = policy == "rand_augment" ? "rand-m9-n4-p1" : "msf";
    EXPECT_EQ(apply_named(policy, image, {kind, "5"}).pixels, apply_named(policy, image, {kind, "5"}).pixels);
    EXPECT_NE(apply_named(policy, image, {kind, "5"}).pixels, apply_named(policy, image, {kind, "6"}).pixels);
  }
}

}  // namespace
}  // namespace abl::images
