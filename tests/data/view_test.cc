// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "data/transform.h"
#include "images/jpeg.h"
#include "images/jpeg_write.h"
#include "tests/data/one_image.h"
#include "tests/images/pictures.h"

namespace abl::data {
namespace {

constexpr int kSize = 24;

config::DataConfig data(const char* decode = "full") {
  config::DataConfig data;
  data.image_size = kSize, data.decode = *value_named<config::Decode>(decode);
  return data;
}

images::Image view(const ImageSource& source, const config::RecipeConfig& recipe, const char* decode,
                   std::uint64_t seed) {
  images::RandomStream random{3, images::Purpose::kAugmentation, {seed}};
  return Augmentation{recipe, data(decode)}(source, 0, random)->image;
}

/// The largest of the differences between bytes, and their mean.
std::pair<int, double> difference(const images::Image& one, const images::Image& other) {
  int most = 0;
  double sum = 0;
  for (std::size_t i = 0; i < one.pixels.size(); ++i) {
    const int apart = std::abs(one.pixels[i] - other.pixels[i]);
    most = std::max(most, apart), sum += apart;
  }
  return {most, sum / static_cast<double>(one.pixels.size())};
}

images::Image gradient(int width, int height) {
  images::Image image = images::black(width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      auto* pixel = image.row(y) + 3 * x;
      pixel[0] = static_cast<std::uint8_t>(255 * x / width),
      pixel[1] = pixel[2] = static_cast<std::uint8_t>(255 * y / height);
    }
  return image;
}

TEST(ViewTest, OfARegionIsThatOfTheWholeImage) {
  for (const images::JpegKind& kind :
       {images::JpegKind{"420", JCS_YCbCr, 2, 2}, images::JpegKind{"444"},
        images::JpegKind{"grey", JCS_GRAYSCALE}, images::JpegKind{"progressive", JCS_YCbCr, 2, 1, true}})
    for (const auto& [width, height] : {std::pair{131, 90}, std::pair{40, 203}, std::pair{20, 11}}) {
      const std::string file = images::jpeg_of(kind, width, height);
      const OneImage stored{file}, whole{images::decode_jpeg(file)};
      for (const char* crop : {"none", "pad", "resized"})
        for (const char* interpolation : {"bilinear", "bicubic"})
          for (std::uint64_t seed = 0; seed < 8; ++seed) {
            config::RecipeConfig recipe;
            recipe.crop = *value_named<config::Crop>(crop),
            recipe.interpolation = *value_named<config::Resampling>(interpolation), recipe.flip = 0.5,
            recipe.eval_crop_ratio = 0.8;
            ASSERT_EQ(view(stored, recipe, "full", seed).pixels, view(whole, recipe, "full", seed).pixels)
                << kind.name << width << crop << interpolation << seed;
            ASSERT_EQ(centre_of(stored, 0, recipe, kSize)->image.pixels,
                      centre_of(whole, 0, recipe, kSize)->image.pixels)
                << kind.name << width << interpolation;
          }
    }
}

TEST(ViewTest, OfALongImageIsDecodedInItsMiddleAlone) {
  const OneImage stored{images::jpeg_of({"420", JCS_YCbCr, 2, 2}, 60, 400)};
  int rows = 0;
  stored.decode(0, [&](int width, int height) {
    const auto wanted =
        frame_centre(width, height, 30, kSize, images::Interpolation::kBicubic).wanted(/*reduced=*/false);
    rows = wanted.region.height;
    return wanted;
  });
  EXPECT_LT(rows, 2 * kSize + 10) << "of 400";
}

TEST(ViewTest, AtAReducedScaleShowsTheSameFromTheSamePlace) {
  const OneImage stored{images::encode_jpeg(gradient(511, 389), 98, images::Chroma::kFull)};
  config::RecipeConfig recipe;
  recipe.crop = config::Crop::kResized, recipe.crop_area = 0.3;
  int reduced_views = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const images::Image full = view(stored, recipe, "full", seed),
                        reduced = view(stored, recipe, "reduced", seed);
    // six, where the crop's edges were taken to lie between the decoded pixels
    EXPECT_LE(difference(full, reduced).first, 3) << seed;
    reduced_views += full.pixels != reduced.pixels;
  }
  EXPECT_GT(reduced_views, 30) << "the scale makes a difference, though a small one";
}

TEST(ViewTest, SmallCropsAreDecodedAtFullScaleWhateverIsAllowed) {
  const OneImage stored{images::jpeg_of({"420", JCS_YCbCr, 2, 2}, 45, 47)};
  config::RecipeConfig recipe;
  recipe.crop = config::Crop::kResized;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_EQ(view(stored, recipe, "full", seed).pixels, view(stored, recipe, "reduced", seed).pixels)
        << seed;
}

TEST(ViewTest, EvaluationIsNeverReduced) {
  const OneImage stored{images::jpeg_of({"420", JCS_YCbCr, 2, 2}, 300, 260)};
  const OneImage whole{images::decode_jpeg(images::jpeg_of({"420", JCS_YCbCr, 2, 2}, 300, 260))};
  EXPECT_EQ(centre_of(stored, 0, {}, kSize)->image.pixels, centre_of(whole, 0, {}, kSize)->image.pixels);
}

}  // namespace
}  // namespace abl::data
