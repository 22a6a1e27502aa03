// SPDX-License-Identifier: Apache-2.0
// Masks against pycocotools: make_mask_fixtures.py wrote what it makes of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <limits>

#include "base/file.h"
#include "images/masks/coded.h"
#include "images/masks/mask.h"
#include "images/masks/overlap.h"
#include "images/masks/polygons.h"
#include "images/random.h"
#include "tests/error_of.h"

namespace abl::images {
namespace {

using nlohmann::json;

const json& mask_fixtures() {
  static const json kAll = json::parse(read_file(ABLATE_SOURCE_DIR "/tests/images/mask_fixtures.json"));
  return kAll;
}

std::vector<std::uint8_t> bytes_of(const json& rows) {
  std::vector<std::uint8_t> bytes;
  for (const auto& row : rows)
    for (const char c : row.get<std::string>()) bytes.push_back(c == '1');
  return bytes;
}

Mask mask_of(const json& fixture) {
  const auto& rows = fixture.at("rows");
  return mask_of_pixels(bytes_of(rows), static_cast<int>(rows[0].get<std::string>().size()),
                        static_cast<int>(rows.size()));
}

Box box_of(const json& values) { return {values[0], values[1], values[2], values[3]}; }

TEST(MaskTest, IsWrittenAndReadAsPycocotoolsDoes) {
  for (const auto& fixture : mask_fixtures().at("masks")) {
    const Mask mask = mask_of(fixture);
    const std::string counts = fixture.at("counts");
    SCOPED_TRACE(counts);
    EXPECT_EQ(compressed(mask), counts);
    EXPECT_EQ(mask_of_compressed(counts, mask.width, mask.height), mask);
    EXPECT_EQ(pixels_of(mask), bytes_of(fixture.at("rows")));
    EXPECT_EQ(area(mask), fixture.at("area"));
    EXPECT_EQ(bounds(mask), box_of(fixture.at("box")));
    const std::vector<std::uint64_t> runs{mask.runs.begin(), mask.runs.end()};
    EXPECT_EQ(mask_of_runs(runs, mask.width, mask.height), mask);
  }
}

TEST(MaskTest, IsFlippedCroppedAndResizedAsItsPixelsAre) {
  for (const auto& fixture : mask_fixtures().at("masks")) {
    const Mask mask = mask_of(fixture);
    SCOPED_TRACE(fixture.at("counts"));
    EXPECT_EQ(compressed(flipped(mask)), fixture.at("flipped"));
    const auto& region = fixture.at("region");
    EXPECT_EQ(compressed(cropped(mask, {region[0], region[1], region[2], region[3]})), fixture.at("cropped"));
    const auto& size = fixture.at("size");
    EXPECT_EQ(compressed(resized(mask, size[0], size[1])), fixture.at("resized"));
  }
}

TEST(MaskTest, OfAPolygonIsPycocotools) {
  for (const auto& fixture : mask_fixtures().at("polygons")) {
    const Polygon polygon = fixture.at("points");
    EXPECT_EQ(compressed(mask_of_polygon(polygon, fixture.at("width"), fixture.at("height"))),
              fixture.at("counts"))
        << fixture.dump();
  }
}

TEST(MaskTest, OfSeveralPolygonsIsTheirUnion) {
  const std::vector<Polygon> two{{1, 1, 4, 1, 4, 4, 1, 4}, {3, 3, 8, 3, 8, 6, 3, 6}};
  const std::vector<Mask> each{mask_of_polygon(two[0], 9, 9), mask_of_polygon(two[1], 9, 9)};
  const Mask both = mask_of_polygons(two, 9, 9);
  EXPECT_EQ(both, merged(each, Merge::kUnion));
  EXPECT_EQ(area(both), 9u + 15u - 1u);
  EXPECT_EQ(bounds(std::span{two}), (Box{1, 1, 7, 5}));
  EXPECT_EQ(area(mask_of_polygons({}, 9, 9)), 0u);
}

TEST(MaskTest, IsMergedAndComparedAsPycocotoolsDoes) {
  for (const auto& fixture : mask_fixtures().at("pairs")) {
    const auto read = [&](const char* name) {
      return mask_of_compressed(fixture.at(name).get<std::string>(), fixture.at("width"),
                                fixture.at("height"));
    };
    const Mask found = read("found"), truth = read("truth");
    const std::vector<Mask> both{found, truth};
    EXPECT_EQ(merged(both, Merge::kUnion), read("union"));
    EXPECT_EQ(merged(both, Merge::kIntersection), read("intersection"));
    EXPECT_EQ(common_pixels(found, truth), area(read("intersection")));
    EXPECT_DOUBLE_EQ(overlap(found, truth, Against::kThing), fixture.at("thing"));
    EXPECT_DOUBLE_EQ(overlap(found, truth, Against::kCrowd), fixture.at("crowd"));
  }
  for (const auto& fixture : mask_fixtures().at("boxes")) {
    const Box found = box_of(fixture.at("found")), truth = box_of(fixture.at("truth"));
    EXPECT_DOUBLE_EQ(overlap(found, truth, Against::kThing), fixture.at("thing"));
    EXPECT_DOUBLE_EQ(overlap(found, truth, Against::kCrowd), fixture.at("crowd"));
  }
}

TEST(MaskTest, RunsOfNoPixelAreTakenTogether) {
  const std::vector<std::uint64_t> runs{2, 0, 1, 3, 0, 2, 4, 0};
  EXPECT_EQ(mask_of_runs(runs, 4, 3).runs, (std::vector<std::uint32_t>{3, 5, 4}));
}

TEST(MaskTest, APictureWithoutPixelsHasAMask) {
  const Mask none = mask_of_compressed("", 0, 5);
  EXPECT_EQ(area(none), 0u);
  EXPECT_EQ(bounds(none), Box{});
  EXPECT_TRUE(pixels_of(none).empty());
}

TEST(MaskTest, CountsThatCannotBeAreRefusedWithTheReason) {
  const auto message = [](const std::string& counts) {
    return error_of([&] { mask_of_compressed(counts, 4, 3); });
  };
  EXPECT_EQ(message("24"), "run lengths cover 6 pixels; the image has 12");
  EXPECT_EQ(message("25<"), "run lengths exceed the 12 pixels of the image");
  EXPECT_EQ(message("2!5"), "invalid byte 33 in run lengths at character 2; expected '0' to 'o'");
  EXPECT_EQ(message("2\xff"), "invalid byte 255 in run lengths at character 2; expected '0' to 'o'");
  EXPECT_EQ(message("2o"), "run lengths are truncated after character 2");
  EXPECT_EQ(message("OO"), "run length of -1 pixels at character 1 is out of range");
  EXPECT_EQ(message("ooooooo0"), "run length at character 8 exceeds 32 bits");
  EXPECT_THAT(error_of([] {
                mask_of_runs(std::vector<std::uint64_t>{~0ull, 13}, 4, 3);
              }),
              testing::HasSubstr("exceed the 12 pixels"));
  EXPECT_THAT(error_of([] { mask_of_compressed("", 40'000, 1); }),
              testing::HasSubstr("mask size 40000×1 is too large"));
}

TEST(MaskTest, PolygonsThatCannotBeAreRefusedWithTheReason) {
  const auto message = [](const Polygon& polygon) {
    return error_of([&] { mask_of_polygon(polygon, 10, 10); });
  };
  EXPECT_EQ(message({}), "polygon with 0 corners; expected at least 3");
  EXPECT_EQ(message({1, 1, 2, 2}), "polygon with 2 corners; expected at least 3");
  EXPECT_EQ(message({1, 1, 2, 2, 3, 3, 4}),
            "odd number of polygon coordinates (7); expected x and y for each corner");
  EXPECT_EQ(message({1, 1, 2, std::numeric_limits<double>::quiet_NaN(), 3, 3}),
            "polygon coordinate nan is out of range; expected at most 1000000 pixels from the image");
  EXPECT_EQ(message({1, 1, 2, 1e300, 3, 3}),
            "polygon coordinate 1e+300 is out of range; expected at most 1000000 pixels from the image");
  Polygon long_one;
  for (int i = 0; i < 40; ++i) long_one.insert(long_one.end(), {i % 2 == 0 ? -1e6 : 1e6, 1.0 * i});
  EXPECT_THAT(message(long_one), testing::HasSubstr("pixels; expected at most 20000000"));
}

TEST(MaskTest, ADrawnRectangleIsItsBox) {
  EXPECT_EQ(bounds(filled_mask(10, 8, 2, -3, 5, 4)), (Box{2, 0, 3, 4}));
  EXPECT_EQ(area(filled_mask(10, 8, -5, -5, 50, 50)), 80u);
  EXPECT_EQ(area(filled_mask(10, 8, 5, 2, 5, 6)), 0u);
}

}  // namespace
}  // namespace abl::images
