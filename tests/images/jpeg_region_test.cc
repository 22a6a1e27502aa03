// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "images/jpeg.h"
#include "images/jpeg_write.h"
#include "tests/images/pictures.h"

namespace abl::images {
namespace {

const JpegKind kKinds[] = {{"444"},
                           {"420", JCS_YCbCr, 2, 2},
                           {"422", JCS_YCbCr, 2, 1},
                           {"440", JCS_YCbCr, 1, 2},
                           {"411", JCS_YCbCr, 4, 1},
                           {"rgb", JCS_RGB},
                           {"grey", JCS_GRAYSCALE},
                           {"cmyk", JCS_CMYK},
                           {"ycck", JCS_YCCK, 2, 2},
                           {"progressive 420", JCS_YCbCr, 2, 2, true},
                           {"progressive grey", JCS_GRAYSCALE, 1, 1, true}};

class JpegRegion : public testing::TestWithParam<JpegKind> {
 protected:
  static Rectangle random_region(RandomStream& random, int width, int height) {
    const auto below = [&](int bound) {
      return static_cast<int>(random.below(static_cast<std::uint64_t>(bound)));
    };
    Rectangle region{.left = below(width), .top = below(height)};
    region.width = 1 + below(width - region.left), region.height = 1 + below(height - region.top);
    return region;
  }
  static Image cut(const Image& image, int left, int top, int width, int height) {
    Image out{width, height, {}};
    for (int y = top; y < top + height; ++y) {
      const auto row = image.pixels.begin() + 3 * (y * image.width + left);
      out.pixels.insert(out.pixels.end(), row, row + 3 * width);
    }
    return out;
  }
};

TEST_P(JpegRegion, IsTheSameAsDecodingAllAndCutting) {
  RandomStream random{7, Purpose::kSubset};
  for (const auto& [width, height] :
       {std::pair{97, 61}, std::pair{160, 128}, std::pair{33, 200}, std::pair{7, 5}}) {
    const auto file = jpeg_of(GetParam(), width, height);
    const Image whole = decode_jpeg(file);
    for (int i = 0; i < 60; ++i) {
      const Rectangle region = random_region(random, width, height);
      const DecodedRegion view = JpegReader{file}.decode({.region = region});
      ASSERT_EQ(view.image.width, region.width);
      ASSERT_EQ(view.image.height, region.height);
      EXPECT_EQ(view.left + view.top, 0);
      EXPECT_EQ(view.width, region.width);
      ASSERT_EQ(view.image.pixels, cut(whole, region.left, region.top, region.width, region.height).pixels)
          << fmt::format("{}×{} at ({}, {}) of {}×{}", region.width, region.height, region.left, region.top,
                         width, height);
    }
  }
}

TEST_P(JpegRegion, AtAReducedScaleIsAPartOfTheReducedPicture) {
  RandomStream random{8, Purpose::kSubset};
  constexpr int kWidth = 203, kHeight = 150;
  const auto file = jpeg_of(GetParam(), kWidth, kHeight);
  for (int i = 0; i < 200; ++i) {
    const Rectangle region = random_region(random, kWidth, kHeight);
    const int width = 1 + region.width / (1 + i % 9), height = 1 + region.height / (1 + i % 7);
    const DecodedRegion view = JpegReader{file}.decode({.region = region, .width = width, .height = height});
    const double scale = view.width / region.width;
    const int eighths = static_cast<int>(std::lround(scale * 8));
    ASSERT_DOUBLE_EQ(scale, eighths / 8.0);
    EXPECT_DOUBLE_EQ(view.height / region.height, scale) << "one scale for both";
    if (eighths < 8) {
      EXPECT_GE(view.width, width);
      EXPECT_GE(view.height, height);
    }
    if (eighths > 1) {
      EXPECT_TRUE(region.width * eighths / 2 < 8 * width || region.height * eighths / 2 < 8 * height)
          << "a smaller one would have done";
    }
    EXPECT_GE(view.left, 0);
    EXPECT_LT(view.left, 1);
    EXPECT_GE(view.top, 0);
    EXPECT_LT(view.top, 1);
    EXPECT_LE(view.left + view.width, view.image.width);
    EXPECT_LE(view.top + view.height, view.image.height);

    const Image whole = decode_jpeg(file, (std::min(kWidth, kHeight) * eighths + 7) / 8);
    ASSERT_EQ(whole.width, (kWidth * eighths + 7) / 8);
    const int left = region.left * eighths / 8, top = region.top * eighths / 8;
    ASSERT_EQ(view.image.pixels, cut(whole, left, top, view.image.width, view.image.height).pixels)
        << fmt::format("{}/8, {}×{} at ({}, {})", eighths, region.width, region.height, region.left,
                       region.top);
  }
}

TEST_P(JpegRegion, RestartMarkersChangeNoPixelOfAnyRegionAtAnyScale) {
  RandomStream random{9, Purpose::kSubset};
  for (const auto& [width, height] : {std::pair{97, 61}, std::pair{203, 150}, std::pair{7, 5}}) {
    const auto file = jpeg_of(GetParam(), width, height), marked = with_restarts(file);
    ASSERT_EQ(decode_jpeg(marked).pixels, decode_jpeg(file).pixels);
    for (int i = 0; i < 200; ++i) {
      const Rectangle region = random_region(random, width, height);
      const int reduced = i % 3;  // at full scale, a little smaller, much smaller
      const Wanted wanted{.region = region,
                          .width = reduced == 0 ? 0 : 1 + region.width / (reduced * 4),
                          .height = reduced == 0 ? 0 : 1 + region.height / (reduced * 4)};
      const DecodedRegion expected = JpegReader{file}.decode(wanted),
                          view = JpegReader{marked}.decode(wanted);
      ASSERT_EQ(view.image.pixels, expected.image.pixels)
          << fmt::format("{}×{} at ({}, {}) of {}×{}, to {}×{}", region.width, region.height, region.left,
                         region.top, width, height, wanted.width, wanted.height);
      EXPECT_EQ(view.region, region);
      EXPECT_EQ(std::tie(view.image.width, view.left, view.top, view.width, view.height),
                std::tie(expected.image.width, expected.left, expected.top, expected.width, expected.height));
    }
  }
}

TEST_P(JpegRegion, WithRestartMarkersNothingBesideTheRegionIsDecoded) {
  auto marked = with_restarts(jpeg_of(GetParam(), 160, 128));
  const Wanted corner{.region = {.left = 130, .top = 100, .width = 30, .height = 28}};
  const auto expected = JpegReader{marked}.decode(corner).image.pixels;
  const std::size_t data = marked.find("\xff\xda") + 16;  // within the first block
  const std::size_t length = marked.find("\xff\xd0", data) - data;
  marked.replace(data, length, length, '\x55');
  EXPECT_EQ(JpegReader{marked}.decode(corner).image.pixels, expected);
}

TEST_P(JpegRegion, AFileThatBreaksOffIsDamagedWhereverTheRegionLies) {
  const auto file = jpeg_of(GetParam(), 120, 90);
  const Wanted top{.region = {.left = 10, .width = 20, .height = 4}};
  EXPECT_EQ(JpegReader{file}.decode(top).image.width, 20);
  for (const auto& whole : {file, with_restarts(file)})
    for (const std::size_t kept : {whole.size() / 4, whole.size() / 2, whole.size() - 20, whole.size() - 2}) {
      const auto broken = whole.substr(0, kept);
      EXPECT_THROW(JpegReader{broken}.decode(top), Error) << kept << " of " << whole.size();
      EXPECT_THROW(decode_jpeg(broken), Error) << kept << " of " << whole.size();
      EXPECT_THROW(with_restarts(broken), Error) << kept << " of " << whole.size();
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, JpegRegion, testing::ValuesIn(kKinds), [](const auto& tested) {
  auto name = tested.param.name;
  std::ranges::replace(name, ' ', '_');
  return name;
});

TEST(JpegReaderTest, RefusesARegionThatReachesOutside) {
  const auto file = jpeg_of({"444"}, 20, 10);
  for (const Rectangle region : {Rectangle{-1, 0, 5, 5}, Rectangle{0, 0, 21, 5}, Rectangle{0, 0, 0, 5},
                                 Rectangle{0, 6, 5, 5}, Rectangle{2'000'000'000, 0, 2'000'000'000, 5}})
    EXPECT_THROW(JpegReader{file}.decode({.region = region}), Error);
}

TEST(JpegReaderTest, WhateverTheBytesItDecodesOrRefuses) {
  const auto file = jpeg_of({"420", JCS_YCbCr, 2, 2}, 64, 48), marked = with_restarts(file);
  RandomStream random{3, Purpose::kSubset};
  int refused = 0;
  for (int i = 0; i < 1200; ++i) {
    auto damaged = i % 2 == 0 ? file : marked;
    for (int change = 0; change <= i % 4; ++change)
      damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
    try {
      JpegReader reader{damaged};
      const Rectangle region{.left = reader.width() / 3,
                             .top = reader.height() / 3,
                             .width = 1 + reader.width() / 3,
                             .height = 1 + reader.height() / 3};
      const bool large = std::size_t{1} * reader.width() * reader.height() > 1'000'000;  // the header was hit
      if (!large) reader.decode({.region = region, .width = 1 + i % 9, .height = 1 + i % 9});
    } catch (const Error& error) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 60);
}

TEST(JpegReaderTest, MarkersThatDoNotStandInTheirTurnAreNotReliedOn) {
  const auto marked = with_restarts(jpeg_of({"420", JCS_YCbCr, 2, 2}, 160, 128));
  const Wanted corner{.region = {.left = 130, .top = 100, .width = 30, .height = 28}};
  auto swapped = marked;
  const auto first = swapped.find("\xff\xd1");
  ASSERT_NE(first, swapped.npos);
  swapped[first + 1] = '\xd4';
  EXPECT_THROW(JpegReader{swapped}.decode(corner), Error) << "libjpeg-turbo has the reason";
}

}  // namespace
}  // namespace abl::images
