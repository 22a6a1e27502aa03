// SPDX-License-Identifier: Apache-2.0
#include "scoring/segmentation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/error_of.h"

namespace abl::scoring {
namespace {

using Bytes = std::vector<std::uint8_t>;

// By hand: of class 0 two of three pixels are right, of class 1 one of two, class 2 is told once and never
// there, class 3 is neither; one pixel is ignored.
const Bytes kLabels{0, 0, 0, 1, 1, 255}, kTold{0, 0, 1, 1, 2, 3};

TEST(SegmentationTest, CountsAsMmsegmentation) {
  ConfusionMatrix matrix{4};
  matrix.add(kTold, kLabels);
  const SegmentationScores scores = matrix.scores();
  EXPECT_DOUBLE_EQ(scores.accuracy, 3.0 / 5);
  EXPECT_DOUBLE_EQ(scores.classes[0].accuracy, 2.0 / 3);
  EXPECT_DOUBLE_EQ(scores.classes[1].accuracy, 1.0 / 2);
  EXPECT_TRUE(std::isnan(scores.classes[2].accuracy)) << "no pixel of it: there is no accuracy";
  EXPECT_TRUE(std::isnan(scores.classes[3].accuracy));
  EXPECT_DOUBLE_EQ(scores.classes[0].intersection, 2.0 / 3);
  EXPECT_DOUBLE_EQ(scores.classes[1].intersection, 1.0 / 3);
  EXPECT_DOUBLE_EQ(scores.classes[2].intersection, 0) << "it was told, and is not there";
  EXPECT_TRUE(std::isnan(scores.classes[3].intersection));
  EXPECT_DOUBLE_EQ(scores.mean_accuracy, (2.0 / 3 + 1.0 / 2) / 2);
  EXPECT_DOUBLE_EQ(scores.mean_intersection, (2.0 / 3 + 1.0 / 3 + 0) / 3);
  EXPECT_EQ(scores.classes[0].pixels, 3u);
}

TEST(SegmentationTest, CountsOfPartsAreCountsOfTheWhole) {
  ConfusionMatrix whole{4}, first{4}, second{4};
  whole.add(kTold, kLabels);
  first.add(std::span{kTold}.first(2), std::span{kLabels}.first(2));
  second.add(std::span{kTold}.subspan(2), std::span{kLabels}.subspan(2));
  first.add(second);
  EXPECT_THAT(first.counts(), testing::ElementsAreArray(whole.counts()));
}

TEST(SegmentationTest, NothingCountedIsNoScore) {
  EXPECT_TRUE(std::isnan(ConfusionMatrix{2}.scores().accuracy));
  EXPECT_TRUE(std::isnan(ConfusionMatrix{2}.scores().mean_intersection));
}

TEST(SegmentationTest, RefusesClassesThatThereAreNot) {
  ConfusionMatrix matrix{3};
  EXPECT_EQ(error_of([&] {
              matrix.add(Bytes{0, 0}, Bytes{0, 3});
            }),
            "pixel label 3 is out of range; expected 0 to 2, or 255 (ignored)");
  EXPECT_EQ(error_of([&] {
              matrix.add(Bytes{0, 9}, Bytes{0, 1});
            }),
            "predicted class 9 is out of range; expected 0 to 2");
  EXPECT_EQ(error_of([&] {
              matrix.add(Bytes{0}, Bytes{0, 1});
            }),
            "1 predicted and 2 labelled pixels; expected the same number");
  EXPECT_THAT(matrix.counts(), testing::Each(0u)) << "nothing is counted of what is refused";
  EXPECT_EQ(error_of([] { ConfusionMatrix{256}; }), "256 pixel classes; expected 1 to 255");
}

}  // namespace
}  // namespace abl::scoring
