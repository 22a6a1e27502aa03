// SPDX-License-Identifier: Apache-2.0
// Average precision against pycocotools: make_fixtures.py wrote what it says.
#include "scoring/coco.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>

#include "base/file.h"
#include "images/masks/coded.h"
#include "tests/error_of.h"

namespace abl::scoring {
namespace {

using nlohmann::json;

constexpr double kBound = 1e-6;

const json& fixtures() {
  static const json kAll = json::parse(read_file(ABLATE_SOURCE_DIR "/tests/scoring/coco_fixtures.json"));
  return kAll;
}

void read_place(const json& entry, images::Box& box, images::Mask& mask) {
  const int side = fixtures().at("side");
  const auto& values = entry.at("box");
  box = {values[0], values[1], values[2], values[3]};
  if (entry.contains("counts"))
    mask = images::mask_of_compressed(entry["counts"].get<std::string>(), side, side);
}

ImageMatches matches_of(const json& picture, Regions regions) {
  std::vector<images::Instance> truths;
  for (const auto& entry : picture.at("truths")) {
    images::Instance truth{
        .category = entry.at("category"), .area = entry.at("area"), .crowd = entry.at("crowd") == 1};
    read_place(entry, truth.box, truth.mask);
    truths.push_back(std::move(truth));
  }
  std::vector<Detection> found;
  for (const auto& entry : picture.at("found")) {
    Detection detection{.category = entry.at("category"), .score = entry.at("score")};
    read_place(entry, detection.box, detection.mask);
    found.push_back(std::move(detection));
  }
  return match(truths, found, regions);
}

void expect_value(double value, const json& expected, const std::string& what) {
  if (expected.is_null()) {
    EXPECT_TRUE(std::isnan(value)) << what << " is " << value;
  } else {
    EXPECT_NEAR(value, expected.get<double>(), kBound) << what;
  }
}

template <std::size_t kCount>
void expect_values(const std::array<double, kCount>& values, const json& expected, const std::string& what) {
  ASSERT_EQ(expected.size(), kCount);
  for (std::size_t i = 0; i < kCount; ++i)
    expect_value(values[i], expected[i], what + " " + std::to_string(i));
}

/// In the order of pycocotools' `stats`.
std::array<double, 12> stats_of(const Averages& mean) {
  return {mean.precision[0], mean.precision_50, mean.precision_75,      mean.precision[1],
          mean.precision[2], mean.precision[3], mean.recall_of_best[0], mean.recall_of_best[1],
          mean.recall[0],    mean.recall[1],    mean.recall[2],         mean.recall[3]};
}

TEST(CocoTest, SaysWhatPycocotoolsSays) {
  for (const auto& [name, fixture] : fixtures().at("cases").items()) {
    SCOPED_TRACE(name);
    const auto regions = fixture.at("regions") == "boxes" ? Regions::kBoxes : Regions::kMasks;
    std::vector<ImageMatches> pictures;
    for (const auto& picture : fixture.at("pictures")) pictures.push_back(matches_of(picture, regions));
    const CocoScores scores = coco_scores(pictures, fixture.at("categories"));
    const auto& expected = fixture.at("expected");
    expect_values(stats_of(scores.mean), expected.at("stats"), "stats");
    for (std::size_t k = 0; k < scores.classes.size(); ++k) {
      SCOPED_TRACE("category " + std::to_string(k));
      const auto& of_class = expected.at("classes").at(k);
      const Averages& averages = scores.classes[k].averages;
      expect_values(averages.precision, of_class.at("precision"), "precision");
      expect_value(averages.precision_50, of_class.at("precision_50"), "precision at 0.5");
      expect_value(averages.precision_75, of_class.at("precision_75"), "precision at 0.75");
      expect_values(averages.recall, of_class.at("recall"), "recall");
      expect_values(averages.recall_of_best, of_class.at("recall_of_best"), "recall of the best");
      if (of_class.at("curves").empty()) {
        EXPECT_TRUE(scores.classes[k].curves.empty());
        continue;
      }
      const std::array<std::size_t, 3> kept{0, 5, 9};
      for (std::size_t i = 0; i < kept.size(); ++i) {
        const Curve& curve = scores.classes[k].curves.at(kept[i]);
        expect_values(curve.precision, of_class["curves"][i].at("precision"), "curve");
        expect_values(curve.score, of_class["curves"][i].at("score"), "score of the curve");
      }
    }
  }
}

TEST(CocoTest, CountsTruthsAndDetections) {
  const images::Instance thing{.category = 1, .box = {0, 0, 10, 10}, .area = 100};
  const images::Instance crowd{.category = 1, .box = {0, 0, 90, 90}, .area = 8100, .crowd = true};
  const std::vector<ImageMatches> pictures{match(
      std::vector{thing, crowd},
      std::vector{Detection{.category = 1, .score = 0.5, .box = thing.box, .mask = {}}}, Regions::kBoxes)};
  const CocoScores scores = coco_scores(pictures, 2);
  EXPECT_EQ(scores.classes[1].truths, 1u);
  EXPECT_EQ(scores.classes[1].detections, 1u);
  EXPECT_EQ(scores.classes[0].truths, 0u);
  EXPECT_DOUBLE_EQ(scores.mean.average_precision(), 1);
}

TEST(CocoTest, RefusesWhatCannotBeScored) {
  const Detection nan{
      .category = 0, .score = std::numeric_limits<double>::quiet_NaN(), .box = {}, .mask = {}};
  EXPECT_EQ(error_of([&] { match({}, std::vector{nan}, Regions::kBoxes); }),
            "a detection has score nan; expected a finite number");
  const Detection third{.category = 2, .score = 1, .box = {}, .mask = {}};
  const std::vector<ImageMatches> pictures{match({}, std::vector{third}, Regions::kBoxes)};
  EXPECT_EQ(error_of([&] { coco_scores(pictures, 2); }), "category 2; expected 0 to 1");
  const images::Instance truth{.mask = images::filled_mask(4, 4, 0, 0, 2, 2), .area = 4};
  const Detection other{.category = 0, .score = 1, .box = {}, .mask = images::filled_mask(5, 4, 0, 0, 2, 2)};
  EXPECT_THAT(error_of([&] { match(std::vector{truth}, std::vector{other}, Regions::kMasks); }),
              testing::HasSubstr("expected masks of the same image"));
}

}  // namespace
}  // namespace abl::scoring
