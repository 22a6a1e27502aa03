// SPDX-License-Identifier: Apache-2.0
// Changes of a picture with its boxes, masks and labels: by hand, by properties, and against
// make_joint_fixtures.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <set>

#include "base/file.h"
#include "images/detectron2.h"
#include "images/detr.h"
#include "images/mmsegmentation.h"
#include "tests/error_of.h"

namespace abl::images {
namespace {

using nlohmann::json;

const json& joint_fixtures() {
  static const json kAll = json::parse(read_file(ABLATE_SOURCE_DIR "/tests/images/joint_fixtures.json"));
  return kAll;
}

RandomStream stream_of(std::uint64_t index) { return {1, Purpose::kAugmentation, {index}}; }

/// 20×10 pixels, red where its thing is and labelled 1 there, otherwise black and 0. The thing covers columns
/// 4 to 9 and rows 2 to 6, without the lowest row of its left half.
Annotated picture_of_a_thing(bool with_mask = true) {
  Annotated picture{.image = black(20, 10), .instances = {}, .labels = labelled(20, 10, 0)};
  std::vector<std::uint8_t> pixels(200);
  for (int y = 2; y < 7; ++y)
    for (int x = 4; x < 10; ++x) {
      if (y == 6 && x < 7) continue;
      pixels[static_cast<std::size_t>(y * 20 + x)] = 1;
      picture.image.row(y)[3 * x] = 255;
      picture.labels.row(y)[x] = 1;
    }
  picture.instances.push_back({.category = 3,
                               .box = {4, 2, 6, 5},
                               .mask = with_mask ? mask_of_pixels(pixels, 20, 10) : Mask{},
                               .area = 27,
                               .crowd = true});
  return picture;
}

/// Red, mask and label of every pixel say the same.
void expect_agree(const Annotated& picture) {
  std::vector<std::uint8_t> set(picture.labels.labels.size());
  for (const auto& thing : picture.instances) {
    const auto own = pixels_of(thing.mask);
    ASSERT_EQ(own.size(), set.size());
    for (std::size_t i = 0; i < set.size(); ++i) set[i] |= own[i];
  }
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (picture.labels.labels[i] == LabelMap::kIgnored) continue;
    EXPECT_EQ(picture.labels.labels[i], set[i]) << "pixel " << i;
    EXPECT_EQ(picture.image.pixels[3 * i] == 255, set[i] == 1) << "pixel " << i;
  }
}

TEST(JointTest, AFlipTurnsEverything) {
  auto picture = picture_of_a_thing();
  flip(picture);
  EXPECT_EQ(picture.instances[0].box, (Box{10, 2, 6, 5}));
  EXPECT_EQ(bounds(picture.instances[0].mask), (Box{10, 2, 6, 5}));
  expect_agree(picture);
  flip(picture);
  EXPECT_EQ(picture.instances[0].mask, picture_of_a_thing().instances[0].mask);
}

TEST(JointTest, ABoxThatIsCutIsTheBoxOfWhatIsLeftOfItsMask) {
  // below row 6 only the right half of the thing is left
  const auto part = cropped(picture_of_a_thing(), {2, 6, 12, 4});
  ASSERT_EQ(part.instances.size(), 1u);
  EXPECT_EQ(part.instances[0].box, (Box{5, 0, 3, 1}));
  EXPECT_EQ(part.instances[0].area, 3);
  EXPECT_EQ(part.instances[0].category, 3);
  EXPECT_TRUE(part.instances[0].crowd);
  expect_agree(part);
  const auto of_box = cropped(picture_of_a_thing(false), {2, 6, 12, 4});
  EXPECT_EQ(of_box.instances[0].box, (Box{2, 0, 6, 1})) << "without a mask the part of the box";
  EXPECT_EQ(of_box.instances[0].area, 6);
}

TEST(JointTest, ABoxThatIsNotCutStays) {
  auto picture = picture_of_a_thing();
  picture.instances[0].box = {3.5, 1.5, 7, 6};
  const auto part = cropped(picture, {3, 1, 10, 9});
  EXPECT_EQ(part.instances[0].box, (Box{0.5, 0.5, 7, 6}));
  EXPECT_EQ(part.instances[0].area, 27);
  expect_agree(part);
}

TEST(JointTest, AThingThatVanishesIsDropped) {
  EXPECT_TRUE(cropped(picture_of_a_thing(), {10, 0, 10, 10}).instances.empty());
  EXPECT_TRUE(cropped(picture_of_a_thing(), {4, 6, 3, 4}).instances.empty())
      << "of its box something, of its mask nothing";
  EXPECT_EQ(cropped(picture_of_a_thing(false), {4, 6, 3, 4}).instances.size(), 1u);
}

TEST(JointTest, OutsideOfThePictureNothingIsKnown) {
  const auto part = cropped(picture_of_a_thing(), {-3, -2, 26, 15}, {7, 8, 9});
  EXPECT_EQ(part.image.width, 26);
  EXPECT_EQ(part.image.row(0)[1], 8);
  EXPECT_EQ(part.labels.row(1)[5], LabelMap::kIgnored);
  EXPECT_EQ(part.labels.row(2)[3], 0);
  EXPECT_EQ(part.instances[0].box, (Box{7, 4, 6, 5}));
  expect_agree(part);
  const auto framed = padded(picture_of_a_thing(), 25, 4);
  EXPECT_EQ(framed.image.width, 25);
  EXPECT_EQ(framed.image.height, 10) << "what is larger stays";
  EXPECT_EQ(framed.labels.row(9)[20], LabelMap::kIgnored);
  EXPECT_EQ(framed.instances[0].mask.width, 25);
}

TEST(JointTest, ResizingScalesBoxesAndAreas) {
  const auto picture = resized(picture_of_a_thing(), 40, 30);
  EXPECT_EQ(picture.instances[0].box, (Box{8, 6, 12, 15}));
  EXPECT_EQ(picture.instances[0].area, 27 * 6);
  EXPECT_EQ(area(picture.instances[0].mask), 27u * 6u);
  const auto pixels = pixels_of(picture.instances[0].mask);
  for (std::size_t i = 0; i < pixels.size(); ++i) EXPECT_EQ(picture.labels.labels[i], pixels[i]);
}

TEST(JointTest, SizesAreThoseOfThePapersPrograms) {
  for (const auto& of : joint_fixtures().at("by_shorter"))
    EXPECT_EQ(size_by_shorter(of[0], of[1], of[2], of[3]), (Size{of[4], of[5]})) << of.dump();
  for (const auto& of : joint_fixtures().at("within"))
    EXPECT_EQ(size_within(of[0], of[1], of[2], of[3]), (Size{of[4], of[5]})) << of.dump();
}

Image image_of(const json& colours) {
  Image image = black(static_cast<int>(colours.size()), 1);
  for (std::size_t i = 0; i < colours.size(); ++i)
    for (std::size_t c = 0; c < 3; ++c) image.pixels[3 * i + c] = colours[i][c];
  return image;
}

TEST(JointTest, ColoursInHsvAreOpencvs) {
  const auto expect_near = [](const Image& ours, const Image& theirs, const std::string& what) {
    for (std::size_t i = 0; i < ours.pixels.size(); ++i)
      EXPECT_NEAR(ours.pixels[i], theirs.pixels[i], 1)
          << what << ", colour " << i / 3;  // its floats round otherwise
  };
  for (const auto& fixture : joint_fixtures().at("saturation")) {
    Image image = image_of(fixture.at("from"));
    scale_saturation(image, fixture.at("factor"));
    expect_near(image, image_of(fixture.at("to")), "saturation " + fixture.at("factor").dump());
  }
  for (const auto& fixture : joint_fixtures().at("hue")) {
    Image image = image_of(fixture.at("from"));
    turn_hue(image, fixture.at("turn"));
    expect_near(image, image_of(fixture.at("to")), "hue " + fixture.at("turn").dump());
  }
}

TEST(JointTest, BytesAreScaledAndCut) {
  Image image{3, 1, {0, 10, 255, 100, 101, 200, 1, 2, 3}};
  scale_bytes(image, 1.5, -3.25);
  EXPECT_THAT(image.pixels, testing::ElementsAre(0, 11, 255, 146, 148, 255, 0, 0, 1));
}

TEST(JointTest, MultiScaleGivesOneOfItsSides) {
  const MultiScale options{
      .sides = {24, 32}, .longest = 60, .before_crop = {20}, .smallest_crop = 8, .largest_crop = 12};
  std::set<int> sides;
  int flipped = 0, cut = 0;
  constexpr int kTries = 400;
  for (std::uint64_t i = 0; i < kTries; ++i) {
    auto random = stream_of(i);
    const auto out = multi_scale(picture_of_a_thing(), options, random);
    sides.insert(std::min(out.image.width, out.image.height));
    EXPECT_LE(std::max(out.image.width, out.image.height), 60);
    EXPECT_EQ(out.labels.width, out.image.width);
    const bool whole = out.image.width == 2 * out.image.height || out.image.width == 48;
    cut += !whole;
    if (whole && !out.instances.empty()) flipped += out.instances[0].box.left > out.image.width / 2.0 - 1;
    for (const auto& thing : out.instances) {
      EXPECT_EQ(thing.mask.width, out.image.width);
      EXPECT_LE(thing.box.right(), out.image.width + 1e-9);
      EXPECT_GE(thing.box.left, 0);
    }
  }
  EXPECT_TRUE(sides.contains(24));
  EXPECT_TRUE(sides.contains(30)) << "32 would make the longer side 64";
  EXPECT_NEAR(cut, kTries * 0.5, kTries * 0.15);
  auto one = stream_of(7), again = stream_of(7);
  EXPECT_EQ(multi_scale(picture_of_a_thing(), options, one).image.pixels,
            multi_scale(picture_of_a_thing(), options, again).image.pixels);
  auto random = stream_of(0);
  EXPECT_THAT(error_of([&] { multi_scale(picture_of_a_thing(), {.sides = {}}, random); }),
              testing::HasSubstr("no sizes"));
}

TEST(JointTest, LargeScaleJitterGivesOneSize) {
  int larger = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    auto random = stream_of(i);
    const auto out = large_scale_jitter(picture_of_a_thing(), {.width = 30, .height = 24}, random);
    EXPECT_EQ(out.image.width, 30);
    EXPECT_EQ(out.image.height, 24);
    EXPECT_EQ(out.labels.labels.size(), 720u);
    const bool framed = out.labels.row(0)[29] == LabelMap::kIgnored;
    larger += !framed;
    if (framed) {
      EXPECT_EQ(out.image.row(0)[3 * 29], 128);
    }
  }
  EXPECT_NEAR(larger, 100 * 1.0 / 1.9, 20) << "of scales from 0.1 to 2 those above 1 fill the width";
  auto random = stream_of(0);
  const auto exact = large_scale_jitter(picture_of_a_thing(),
                                        {.width = 40, .height = 40, .low = 1, .high = 1, .flip = 0}, random);
  EXPECT_EQ(exact.instances[0].box, (Box{8, 4, 12, 10})) << "what just fits is twice as large";
}

TEST(JointTest, ACropHasNoClassThatIsMostOfIt) {
  LabelMap labels = labelled(40, 20, 0);  // class 0 but for the columns from 30 on
  for (int y = 0; y < 20; ++y)
    for (int x = 30; x < 40; ++x) labels.row(y)[x] = x < 35 ? 1 : LabelMap::kIgnored;
  int mixed = 0, unlimited = 0;
  constexpr int kTries = 300;
  const auto is_mixed = [&](const Rectangle& part) {
    expect_inside(part, 40, 20);
    EXPECT_EQ(part.width, 10);
    int zero = 0, one = 0;
    for (int x = part.left; x < part.left + 10; ++x) zero += x < 30, one += x >= 30 && x < 35;
    return one > 0 && std::max(zero, one) < 0.75 * (zero + one);
  };
  for (std::uint64_t i = 0; i < kTries; ++i) {
    auto random = stream_of(i);
    mixed += is_mixed(draw_mixed_crop(labels, 10, 10, 0.75, random));
    unlimited += is_mixed(draw_mixed_crop(labels, 10, 10, 1, random));
  }
  // 5 of 31 places are mixed (left 23 to 27, where at most 7 of 10 columns are class 0, or of 8 ignored ones
  // fewer)
  EXPECT_GT(mixed, kTries * 0.7);
  EXPECT_LT(unlimited, kTries * 0.35);
  auto random = stream_of(0);
  EXPECT_EQ(draw_mixed_crop(labels, 100, 100, 0.75, random), (Rectangle{0, 0, 40, 20}))
      << "no larger than the map";
}

TEST(JointTest, DistortionLeavesSomePicturesAloneAndIsDrawnFromItsStream) {
  const Image image = filled(4, 4, {200, 100, 50});
  int same = 0;
  constexpr int kTries = 800;
  for (std::uint64_t i = 0; i < kTries; ++i) {
    Image changed = image;
    auto random = stream_of(i);
    distort(changed, {}, random);
    same += changed.pixels == image.pixels;
  }
  EXPECT_NEAR(same, kTries / 16.0, 4 * std::sqrt(kTries / 16.0))
      << "each of four is left out half of the time";
}

TEST(JointTest, ASegmentationViewHasOneSize) {
  const SegmentationRecipe recipe{.ratio = {.longer = 80, .shorter = 20}, .width = 24, .height = 16};
  for (std::uint64_t i = 0; i < 40; ++i) {
    auto random = stream_of(i);
    const auto view = segmentation_view(picture_of_a_thing(), recipe, random);
    EXPECT_EQ(view.image.width, 24);
    EXPECT_EQ(view.image.height, 16);
    EXPECT_EQ(view.labels.labels.size(), std::size_t{24 * 16});
    for (int y = 0; y < 16; ++y)
      for (int x = 0; x < 24; ++x)
        if (view.image.row(y)[3 * x] == 124 && view.image.row(y)[3 * x + 1] == 116) {
          EXPECT_EQ(view.labels.row(y)[x], LabelMap::kIgnored);
        }
  }
}

}  // namespace
}  // namespace abl::images
