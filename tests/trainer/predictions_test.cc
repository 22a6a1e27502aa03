// SPDX-License-Identifier: Apache-2.0
// What an evaluation leaves to look at.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "worker/trainer/tasks/dense/draw.h"
#include "worker/trainer/tasks/detect/coco_scoring.h"

namespace abl::tasks {
namespace {

images::Colour pixel(const images::Image& image, int x, int y) {
  const auto* const at = image.row(y) + 3 * x;
  return {at[0], at[1], at[2]};
}

images::Instance thing(int category, const images::Box& box, int width, int height) {
  return {.category = category,
          .box = box,
          .mask = images::filled_mask(width, height, static_cast<int>(box.left), static_cast<int>(box.top),
                                      static_cast<int>(box.right()), static_cast<int>(box.bottom())),
          .area = box.area()};
}

TEST(Predictions, ClassesHaveColoursThatAreToldApart) {
  std::set<images::Colour> colours;
  for (int k = 0; k < 150; ++k) colours.insert(colour_of_class(k));
  EXPECT_EQ(colours.size(), 150u);
  const auto shown = legend({"a", "b"}, 1);
  EXPECT_EQ(shown.values[1][0].item<float>(), colour_of_class(2)[0]);
}

TEST(Predictions, LabelsAreDrawnAndWhatHasNoneIsWhite) {
  auto labels = images::labelled(3, 2, 1);
  labels.row(1)[2] = images::LabelMap::kIgnored;
  const auto image = drawn(labels);
  EXPECT_EQ(pixel(image, 0, 0), colour_of_class(1));
  EXPECT_EQ(pixel(image, 2, 1), (images::Colour{255, 255, 255}));
}

TEST(Predictions, LargePicturesLoseEverySomeOfTheirPixels) {
  const auto sheet = side_by_side({images::filled(600, 300, {1, 2, 3}), images::filled(600, 300, {4, 5, 6})});
  EXPECT_EQ(sheet.width, 2 * 200 + 4);
  EXPECT_EQ(sheet.height, 100);
  EXPECT_EQ(pixel(sheet, 0, 0), (images::Colour{1, 2, 3}));
  EXPECT_EQ(pixel(sheet, 204, 99), (images::Colour{4, 5, 6}));
}

TEST(Predictions, ThingsAreOutlinedAndTintedWhereAScoreIsHighEnough) {
  const auto ground = images::filled(20, 10, {0, 0, 0});
  const auto truth = thing(0, {.left = 2, .top = 2, .width = 6, .height = 6}, 20, 10);
  const std::vector<scoring::Detection> found{
      {.category = 0, .score = 0.9, .box = truth.box, .mask = truth.mask},
      {.category = 1, .score = 0.4, .box = {12, 1, 5, 5}, .mask = images::filled_mask(20, 10, 12, 1, 17, 6)},
      {.category = 1, .score = 0.8, .box = {-5, -5, 400, 400}, .mask = {}}};  // reaches beyond the picture
  const auto sheet = with_things(ground, {truth}, found);
  const auto colour = colour_of_class(1);
  EXPECT_EQ(pixel(sheet, 2, 2), colour) << "the outline";
  EXPECT_EQ(pixel(sheet, 4, 4)[0], colour[0] / 2) << "the mask";
  EXPECT_EQ(pixel(sheet, 24 + 2, 2), colour) << "what was found stands at the right";
  EXPECT_EQ(pixel(sheet, 24 + 13, 3), (images::Colour{0, 0, 0})) << "a score of 0.4";
}

TEST(Predictions, CategoriesWithoutTruthsHaveNoScores) {
  const auto truth = thing(0, {.left = 2, .top = 2, .width = 6, .height = 6}, 20, 10);
  const std::vector<scoring::Detection> found{
      {.category = 0, .score = 0.9, .box = truth.box, .mask = truth.mask}};
  const PictureMatches matches{.picture = 0,
                               .boxes = scoring::match({&truth, 1}, found, scoring::Regions::kBoxes),
                               .masks = scoring::match({&truth, 1}, found, scoring::Regions::kMasks)};
  const auto scores = scores_of({matches}, 2);
  EXPECT_DOUBLE_EQ(average_precisions(scores, "val").at("val/box_ap"), 100);
  const auto findings = of_categories(scores, {"disc", "ring"});
  const auto& classes = findings.arrays.at("classes").values;
  EXPECT_EQ(classes[0][0].item<float>(), 100);
  EXPECT_EQ(classes[0][4].item<float>(), 1) << "a thing";
  EXPECT_TRUE(std::isnan(classes[1][0].item<float>()));
  const auto& curve = findings.arrays.at("precision-over-recall-of-boxes").values;
  EXPECT_EQ(curve.size(0), 21);
  EXPECT_EQ(curve[20][0].item<float>(), 100);
  EXPECT_TRUE(std::isnan(curve[0][1].item<float>()));
}

}  // namespace
}  // namespace abl::tasks
