// SPDX-License-Identifier: Apache-2.0
#include "data/annotated/scenes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "base/sha256.h"
#include "images/masks/overlap.h"
#include "tests/error_of.h"

namespace abl::data {
namespace {

std::string bytes_of(const images::Annotated& scene) {
  std::string bytes{scene.image.pixels.begin(), scene.image.pixels.end()};
  bytes.append(scene.labels.labels.begin(), scene.labels.labels.end());
  for (const auto& thing : scene.instances) bytes += std::to_string(thing.category);
  return bytes;
}

TEST(ScenesTest, AreTheSameOnEveryMachine) {
  std::string all;
  for (const Split split : {Split::kTrain, Split::kVal})
    for (std::uint64_t index = 0; index < 20; ++index)
      for (const int side : {64, 96, 128}) all += bytes_of(draw_scene(split, index, side));
  EXPECT_EQ(sha256_hex(all).substr(0, 16), "4b2fe54017209c4e")
      << "another scene: kScenesFingerprint must change";
}

TEST(ScenesTest, DifferByIndexSplitAndSide) {
  const auto first = draw_scene(Split::kTrain, 0);
  EXPECT_EQ(bytes_of(first), bytes_of(draw_scene(Split::kTrain, 0)));
  EXPECT_NE(bytes_of(first), bytes_of(draw_scene(Split::kTrain, 1)));
  EXPECT_NE(bytes_of(first), bytes_of(draw_scene(Split::kVal, 0)));
  EXPECT_EQ(first.image.width, kSceneSide);
  EXPECT_EQ(draw_scene(Split::kTrain, 0, 128).image.height, 128);
}

TEST(ScenesTest, MasksBoxesAndLabelsSayTheSame) {
  for (std::uint64_t index = 0; index < 200; ++index) {
    const auto scene = draw_scene(Split::kTrain, index);
    std::vector<std::uint8_t> labels(scene.labels.labels.size());
    for (const auto& thing : scene.instances) {
      EXPECT_EQ(thing.box, images::bounds(thing.mask));
      EXPECT_EQ(thing.area, static_cast<double>(images::area(thing.mask)));
      EXPECT_GE(thing.area, 40) << "scene " << index << ": too little of it is to be seen";
      const auto pixels = images::pixels_of(thing.mask);
      for (std::size_t i = 0; i < pixels.size(); ++i)
        if (pixels[i]) {
          EXPECT_EQ(labels[i], 0) << "two shapes have one pixel";
          labels[i] = static_cast<std::uint8_t>(1 + thing.category);
        }
    }
    EXPECT_EQ(labels, scene.labels.labels) << "scene " << index;
  }
}

TEST(ScenesTest, EveryCategoryIsAsOftenThereAndNoPlaceOrSizeTellsIt) {
  constexpr int kScenes = 3000;
  std::array<int, kSceneCategories.size()> count{};
  std::array<double, kSceneCategories.size()> left{};
  std::set<std::size_t> numbers;
  int things = 0, covered = 0;
  for (std::uint64_t index = 0; index < kScenes; ++index) {
    const auto scene = draw_scene(Split::kVal, index, 64);
    numbers.insert(scene.instances.size());
    for (const auto& thing : scene.instances) {
      const auto category = static_cast<std::size_t>(thing.category);
      ++count[category], ++things;
      left[category] += thing.box.left + thing.box.width / 2;
      covered += thing.box.left > 0 && thing.area < 0.2 * thing.box.area();
    }
  }
  EXPECT_THAT(numbers, testing::ElementsAre(2, 3, 4, 5, 6));
  for (std::size_t i = 0; i < count.size(); ++i) {
    EXPECT_NEAR(count[i], things / 7.0, 4 * std::sqrt(things / 7.0)) << kSceneCategories[i];
    EXPECT_NEAR(left[i] / count[i], 32, 1.5) << kSceneCategories[i];
  }
}

TEST(ScenesTest, ShapesCoverEachOther) {
  int overlapping = 0;
  for (std::uint64_t index = 0; index < 200; ++index) {
    const auto scene = draw_scene(Split::kTrain, index);
    for (std::size_t i = 1; i < scene.instances.size(); ++i)
      overlapping +=
          images::overlap(scene.instances[i].box, scene.instances[i - 1].box, images::Against::kThing) > 0;
  }
  EXPECT_GT(overlapping, 100);
}

TEST(ScenesTest, AreADataSet) {
  const AnnotatedSet set = drawn_scenes(5, 3);
  EXPECT_EQ(set.train->size(), 5u);
  EXPECT_EQ(set.of(Split::kVal).size(), 3u);
  EXPECT_EQ(set.categories.size() + 1, set.labels.size());
  EXPECT_EQ(set.train->extent(2).width, kSceneSide);
  const auto scene = set.train->load(2);
  EXPECT_EQ(bytes_of(*scene), bytes_of(draw_scene(Split::kTrain, 2)));
  EXPECT_EQ(set.train->instances(2), scene->instances.size());
  EXPECT_EQ(set.train->name(2), "train scene 2");
  EXPECT_EQ(error_of([] { drawn_scenes(1, 1, 32); }),
            "scene size 32 is out of range; expected 64 to 128 pixels");
}

}  // namespace
}  // namespace abl::data
