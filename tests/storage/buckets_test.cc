// SPDX-License-Identifier: Apache-2.0
#include "storage/buckets.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

namespace abl::storage {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

BucketedSeries bucketed(const std::vector<double>& values, std::uint32_t bucket_steps,
                        std::size_t exact_up_to, std::uint32_t stride = 1) {
  Bucketer buckets{bucket_steps, exact_up_to};
  std::uint32_t step = 0;
  for (const double value : values) buckets.add({step, value, 1000 + std::int64_t{step}}), step += stride;
  return buckets.take();
}

TEST(Buckets, AShortSeriesStaysWhole) {
  const auto curve = bucketed({3, std::nan(""), 1}, 64, 3);
  EXPECT_EQ(curve.bucket_steps, 0u);
  EXPECT_THAT(curve.series.steps, ElementsAre(0, 1, 2));
  EXPECT_THAT(curve.series.times_ms, ElementsAre(1000, 1001, 1002));
  EXPECT_TRUE(std::isnan(curve.series.values.at(1)));
  EXPECT_EQ(curve.points, 3u);
  EXPECT_EQ(curve.not_finite, 1u);
  EXPECT_THAT(curve.buckets, IsEmpty());
}

TEST(Buckets, OfALongOneEachBucketGivesItsFirstLowestHighestAndLastInOrder) {
  const auto curve = bucketed({5, 9, 1, 6, 7, 2, 2, 2}, 4, 4);
  EXPECT_EQ(curve.bucket_steps, 4u);
  EXPECT_THAT(curve.series.steps, ElementsAre(0, 1, 2, 3, 4, 5, 7));
  EXPECT_THAT(curve.series.values, ElementsAre(5, 9, 1, 6, 7, 2, 2));
  ASSERT_EQ(curve.buckets.size(), 2u);
  EXPECT_EQ(curve.buckets[0].points, 4u);
  EXPECT_DOUBLE_EQ(curve.buckets[0].mean, 5.25);
  EXPECT_EQ(curve.buckets[1].middle, 5u);
  EXPECT_DOUBLE_EQ(curve.buckets[1].mean, 3.25);
}

TEST(Buckets, PointsThatAreNotFiniteAreCountedMarkedAndInNoMean) {
  const auto curve =
      bucketed({1, std::nan(""), 3, -HUGE_VAL, std::nan(""), std::nan(""), std::nan(""), std::nan("")}, 4, 0);
  EXPECT_THAT(curve.series.steps, ElementsAre(0, 1, 2, 3, 4, 7));
  EXPECT_EQ(curve.not_finite, 6u);
  ASSERT_EQ(curve.buckets.size(), 2u);
  EXPECT_DOUBLE_EQ(curve.buckets[0].mean, 2);
  EXPECT_EQ(curve.buckets[0].not_finite, 2u);
  EXPECT_TRUE(std::isnan(curve.buckets[1].mean));
}

TEST(Buckets, StepsBetweenPointsAreNoPoints) {
  const auto curve = bucketed({1, 2, 3}, 4, 0, 1000);
  EXPECT_THAT(curve.series.steps, ElementsAre(0, 1000, 2000));
  EXPECT_EQ(curve.buckets.size(), 3u) << "empty ones are not there";
  EXPECT_THAT(bucketed({}, 4, 0).series.steps, IsEmpty());
}

TEST(Buckets, NoExtremeIsLostAndEveryPointIsCounted) {
  std::mt19937 random{7};
  std::normal_distribution<double> noise;
  std::vector<double> values;
  for (int i = 0; i < 10'000; ++i) values.push_back(noise(random));
  const auto range = StepRange{0, 9'999};
  const auto steps = Bucketer::steps_for(range, 100);
  const auto curve = bucketed(values, steps, 500);
  EXPECT_EQ(steps, 128u);
  EXPECT_LE(curve.series.steps.size(), 100 * Bucketer::kMostOfBucket);
  std::uint64_t points = 0;
  for (std::size_t i = 0; i < curve.buckets.size(); ++i) {
    points += curve.buckets[i].points;
    const auto at = [&](std::size_t place) {
      return values.begin() + static_cast<std::ptrdiff_t>(std::min(place, values.size()));
    };
    const auto [low, high] = std::minmax_element(at(i * steps), at((i + 1) * steps));
    EXPECT_THAT(curve.series.values, Contains(*low));
    EXPECT_THAT(curve.series.values, Contains(*high));
  }
  EXPECT_EQ(points, 10'000u);
  EXPECT_EQ(std::set<std::uint32_t>(curve.series.steps.begin(), curve.series.steps.end()).size(),
            curve.series.steps.size())
      << "no point is there twice";
}

TEST(Buckets, AreNoMoreThanTheWidthWhereverTheRangeBegins) {
  for (const std::uint32_t from : {0U, 1U, 63U, 64U, 1'000'003U})
    for (const std::uint32_t length : {1U, 2U, 100U, 101U, 6'401U})
      for (const std::uint32_t width : {1U, 100U}) {
        const std::uint32_t to = from + length - 1, steps = Bucketer::steps_for({from, to}, width);
        EXPECT_LE(to / steps - from / steps + 1, width == 1 ? 2U : width) << from << " " << length;
        if (steps > 1) {
          EXPECT_GT(to / (steps / 2) - from / (steps / 2) + 1, width) << "and no wider than needed";
        }
      }
  EXPECT_EQ(Bucketer::steps_for({0, 0xffff'ffff}, 1), 1U << 31) << "an end there is";
}

}  // namespace
}  // namespace abl::storage
