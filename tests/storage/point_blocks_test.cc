// SPDX-License-Identifier: Apache-2.0
#include "storage/point_blocks.h"

#include <cmath>
#include <random>

#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

const double kNone = std::nan("");

class PointBlocksTest : public StoreTest {
 protected:
  PointBlocksTest() {
    submit(sweep_of("s", 1, 1));
    id = run(1);
  }
  RunId id = 0;
  std::mt19937 random{11};

  /// Appends in batches of up to so many points.
  void append(const std::vector<std::uint32_t>& steps, std::size_t most = 5000) {
    std::normal_distribution<double> noise;
    for (std::size_t first = 0; first < steps.size();) {
      const std::size_t count = std::min(steps.size() - first, 1 + random() % most);
      Series series{.name = "loss"};
      for (std::size_t i = first; i < first + count; ++i) {
        const std::uint32_t kind = random() % 500;
        series.steps.push_back(steps[i]);
        series.values.push_back(kind == 0 ? kNone : kind == 1 ? -HUGE_VAL : noise(random));
        series.times_ms.push_back(1'700'000'000'000 + 7 * std::int64_t{steps[i]});
      }
      metrics.append(id, {series});
      first += count;
    }
  }
  static std::vector<std::uint32_t> every(std::uint32_t stride, std::uint32_t count,
                                          std::uint32_t first = 1) {
    std::vector<std::uint32_t> steps;
    for (std::uint32_t i = 0; i < count; ++i) steps.push_back(first + i * stride);
    return steps;
  }
  std::int64_t number(const char* sql) {
    return db.prepared(sql).one([](const Statement& row) { return row.integer(0); }).value_or(0);
  }
  std::int64_t blocks() { return number("SELECT COUNT(*) FROM point_block"); }
  std::int64_t in_blocks() { return number("SELECT COALESCE(SUM(points), 0) FROM point_block"); }

  /// The same curves, once with the blocks and once without them.
  void expect_blocks_change_nothing() {
    struct Asked {
      StepRange range;
      std::uint32_t width;
    };
    const auto last = static_cast<std::uint32_t>(number("SELECT MAX(step) FROM point"));
    std::vector<Asked> asked{{{0, last}, 800}, {{0, last}, 50}, {{0, 0xffff'ffff}, 1000}, {{3, last - 3}, 1}};
    for (int i = 0; i < 40; ++i) {
      const auto one = static_cast<std::uint32_t>(random() % (std::uint64_t{last} + 1)),
                 other = static_cast<std::uint32_t>(random() % (std::uint64_t{last} + 1));
      asked.push_back(
          {{std::min(one, other), std::max(one, other)}, 1 + static_cast<std::uint32_t>(random() % 900)});
    }
    const auto read = [&] {
      std::vector<BucketedSeries> all;
      for (const auto& [range, width] : asked)
        all.push_back(
            metrics.curve(id, "loss", range, Bucketer::steps_for(range, width), std::size_t{width} * 5));
      for (const std::uint32_t most : {1U, 4U, 16U, 300U, 5000U})
        all.push_back({.series = metrics.series(id, {"loss"}, most).at(0)});
      return all;
    };
    const auto with = read();
    ASSERT_GT(blocks(), 0);
    db.execute("CREATE TEMP TABLE aside AS SELECT * FROM point_block; DELETE FROM point_block");
    const auto without = read();
    db.execute("INSERT INTO point_block SELECT * FROM aside; DROP TABLE aside");
    for (std::size_t i = 0; i < with.size(); ++i) {
      const BucketedSeries &got = with[i], &expected = without[i];
      EXPECT_EQ(got.series.steps, expected.series.steps) << i;
      EXPECT_EQ(got.series.times_ms, expected.series.times_ms) << i;
      ASSERT_EQ(got.series.values.size(), expected.series.values.size()) << i;
      for (std::size_t k = 0; k < got.series.values.size(); ++k)
        EXPECT_TRUE(got.series.values[k] == expected.series.values[k] ||
                    (std::isnan(got.series.values[k]) && std::isnan(expected.series.values[k])));
      EXPECT_EQ(got.points, expected.points) << i;
      EXPECT_EQ(got.not_finite, expected.not_finite) << i;
      EXPECT_EQ(got.bucket_steps, expected.bucket_steps) << i;
      ASSERT_EQ(got.buckets.size(), expected.buckets.size()) << i;
      for (std::size_t k = 0; k < got.buckets.size(); ++k) {
        EXPECT_EQ(got.buckets[k].middle, expected.buckets[k].middle);
        EXPECT_EQ(got.buckets[k].points, expected.buckets[k].points);
        EXPECT_EQ(got.buckets[k].not_finite, expected.buckets[k].not_finite);
        if (!std::isnan(expected.buckets[k].mean)) {
          EXPECT_THAT(got.buckets[k].mean, DoubleNear(expected.buckets[k].mean, 1e-12));
        }
      }
    }
  }
};

TEST_F(PointBlocksTest, OfAMetricAtEveryStep) {
  append(every(1, 30'000));
  EXPECT_EQ(blocks(), 14);
  EXPECT_EQ(in_blocks(), 14 * 2048 - 1) << "steps begin at 1";
  expect_blocks_change_nothing();
}

TEST_F(PointBlocksTest, OfOneThatIsMeasuredNowAndThenAndMoreRarelyLater) {
  auto steps = every(50, 9'000, 7);
  for (const std::uint32_t step : every(1, 5'000, 500'001)) steps.push_back(step);
  for (const std::uint32_t step : every(1'000, 6'000, 600'000)) steps.push_back(step);
  append(steps);
  EXPECT_GT(in_blocks(), 15'000);
  EXPECT_LE(number("SELECT MAX(points) FROM point_block"), 2048);
  expect_blocks_change_nothing();
}

TEST_F(PointBlocksTest, AtTheEndOfAllSteps) {
  append(every(1, 10'000, 0xffff'ffff - 9'999));
  EXPECT_GT(in_blocks(), 5'000);
  expect_blocks_change_nothing();
}

TEST_F(PointBlocksTest, APointThatComesLateTakesItsBlockAway) {
  std::vector<std::uint32_t> steps;
  for (const std::uint32_t step : every(1, 20'000))
    if (step != 5'000) steps.push_back(step);
  append(steps);
  const auto before = blocks();
  append({4'999});
  EXPECT_EQ(blocks(), before) << "which was there already, and stays as it is";
  append({5'000});
  EXPECT_EQ(blocks(), before - 1);
  expect_blocks_change_nothing();
  EXPECT_EQ(metrics.curve(id, "loss", {4'990, 5'010}, 1, 100).series.steps.size(), 21u);
}

TEST_F(PointBlocksTest, ARunThatGoesOnFromAnotherHasThemToo) {
  append(every(1, 20'000));
  end(id, RunState::kLost);
  const RunId next = run(1);
  metrics.copy(id, next, 15'000);
  id = next;
  EXPECT_EQ(number("SELECT COUNT(*) FROM point_block WHERE run_id = 2"), 7);
  append(every(1, 10'000, 15'001));
  db.execute("DELETE FROM point_block WHERE run_id = 1; DELETE FROM point WHERE run_id = 1");
  expect_blocks_change_nothing();
}

TEST_F(PointBlocksTest, WhatIsReadGrowsWithTheBucketsAndNotWithThePoints) {
  const auto cost = [&](std::uint32_t last) {
    const StepRange range{0, last};
    const auto before = db.steps();
    EXPECT_EQ(metrics.curve(id, "loss", range, Bucketer::steps_for(range, 100), 500).points, last);
    return db.steps() - before;
  };
  append(every(1, 20'000), 2'000);
  const auto few = cost(20'000);
  append(every(1, 180'000, 20'001), 20'000);
  EXPECT_LT(cost(200'000), 3 * few);
}

TEST(PackedStretches, ComeBackAsTheyWere) {
  std::vector<Stretch> parts(4);
  for (std::uint32_t step = 0; step < 9; ++step)
    parts[1].add({step, step == 4 ? kNone : 5.0 - step, step * 10});
  parts[3].add({40, kNone, -1});
  const auto back = unpacked(packed(parts), 4);
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].place, 1u);
  EXPECT_EQ(back[0].stretch.points(), 9u);
  EXPECT_EQ(back[0].stretch.not_finite(), 1u);
  EXPECT_EQ(back[0].stretch.sum(), 45.0 - 36.0 - 1.0);
  std::vector<std::uint32_t> steps;
  for (const CurvePoint& point : back[0].stretch.kept()) steps.push_back(point.step);
  EXPECT_THAT(steps, ElementsAre(0, 4, 8));
  EXPECT_EQ(back[1].place, 3u);
  EXPECT_FALSE(back[1].stretch.lowest());
  EXPECT_EQ(back[1].stretch.last().time_ms, -1);
}

TEST(PackedStretches, DamagedBytesAreRefused) {
  std::vector<Stretch> parts(4);
  for (std::uint32_t step = 0; step < 50; ++step) parts[step % 4].add({step, std::sin(step), step});
  const std::string whole = packed(parts);
  for (std::size_t size = 1; size < whole.size(); ++size) {
    try {
      EXPECT_LT(unpacked(whole.substr(0, size), 4).size(), 4u);  // ends behind a part
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kDataLoss);
    }
  }
  EXPECT_THROW((void)unpacked(whole, 3), Error) << "a place that is none";
  std::mt19937 random{3};
  for (int i = 0; i < 2'000; ++i) {
    std::string bytes = whole;
    bytes[random() % bytes.size()] = static_cast<char>(random());
    try {
      (void)unpacked(bytes, 4);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kDataLoss);
    }
  }
}

}  // namespace
}  // namespace abl::storage
