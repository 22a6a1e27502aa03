// SPDX-License-Identifier: Apache-2.0
#include "statistics/sequential.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "base/error.h"
#include "statistics/difference.h"
#include "statistics/summary.h"
#include "statistics/welch.h"

namespace abl::statistics {
namespace {

/// Two rows without a difference, of which one may vary more.
struct Rows {
  void grow(std::mt19937_64& random) {
    std::normal_distribution<double> normal;
    row.push_back(deviation * normal(random));
    baseline.push_back(normal(random));
  }
  double deviation = 1;
  std::vector<double> row{}, baseline{};
};

/// How often, of all simulations, a comparison that is looked at from two seeds to eight is called different.
double share_called_different(int simulations, double deviation,
                              const std::function<bool(const Rows&, std::size_t)>& look) {
  std::mt19937_64 random{5};
  int different = 0;
  for (int i = 0; i < simulations; ++i) {
    Rows rows{.deviation = deviation};
    rows.grow(random);
    bool stopped = false;
    for (std::size_t k = 0; k < 7 && !stopped; ++k) {
      rows.grow(random);
      stopped = look(rows, k);
    }
    different += stopped;
  }
  return static_cast<double>(different) / simulations;
}

constexpr int kSimulations = 20'000;
const double kChance = 3 * std::sqrt(0.05 * 0.95 / kSimulations);

TEST(SequentialTest, LooksTogetherCallEqualRowsDifferentInAtMostFivePercent) {
  for (const Spending spending : {Spending::kOBrienFleming, Spending::kPocock}) {
    const SequentialDesign design{7, 0.95, spending};
    for (const Pairing pairing : {Pairing::kNone, Pairing::kBySeed}) {
      for (const double deviation : {1.0, 5.0}) {
        std::vector<std::optional<double>> p;
        const double share =
            share_called_different(kSimulations, deviation, [&](const Rows& rows, std::size_t k) {
              p.resize(k);
              p.push_back(difference_to_baseline(rows.row, rows.baseline, pairing)->test->p);
              return *design.p(p) <= 0.05;
            });
        EXPECT_LE(share, 0.05 + kChance) << "deviation " << deviation;
        RecordProperty(fmt::format("spending_{}_pairing_{}_deviation_{}", static_cast<int>(spending),
                                   static_cast<int>(pairing), deviation),
                       fmt::format("{}", share));
      }
    }
  }
}

TEST(SequentialTest, WithoutADesignTheyDoSoFarMoreOften) {
  const double share = share_called_different(kSimulations, 1, [&](const Rows& rows, std::size_t) {
    return welch_test(rows.row, rows.baseline)->p < 0.05;
  });
  RecordProperty("share", fmt::format("{}", share));
  EXPECT_GT(share, 0.1) << "the simulation sees what the design prevents";
}

TEST(SequentialTest, IntervalsOfAllLooksTogetherHoldTheTrueDifference) {
  const SequentialDesign design{7};
  const double missed = share_called_different(kSimulations, 1, [&](const Rows& rows, std::size_t k) {
    const auto interval =
        difference_to_baseline(rows.row, rows.baseline, Pairing::kNone, design.level_at(k))->interval;
    return interval->low > 0 || interval->high < 0;
  });
  EXPECT_LE(missed, 0.05 + kChance);
  RecordProperty("missed", fmt::format("{}", missed));
}

TEST(SequentialTest, ALookIsSignificantWhereItsIntervalExcludesZero) {
  const SequentialDesign design{3};
  const std::vector<double> row{79.79, 79.91, 79.66}, baseline{78.55, 78.40, 79.71};
  for (double shift = -4; shift < 4; shift += 0.25) {
    std::vector<double> moved{row};
    for (double& value : moved) value += shift;
    const auto difference = difference_to_baseline(moved, baseline, Pairing::kNone, design.level_at(1));
    const bool excluded = difference->interval->low > 0 || difference->interval->high < 0;
    EXPECT_EQ(*design.p({std::nullopt, difference->test->p}) < 0.05, excluded) << shift;
  }
}

TEST(SequentialTest, OneLookIsTheTestItself) {
  const SequentialDesign design{1};
  EXPECT_NEAR(design.level_at(0), 0.95, 1e-15);
  EXPECT_NEAR(*design.p({0.03}), 0.03, 1e-15);
}

TEST(SequentialTest, ALaterLookNeverRaisesP) {
  const SequentialDesign design{4};
  EXPECT_EQ(design.p({1e-9}), design.p({1e-9, 0.9, 0.9, 0.9}));
  EXPECT_LT(*design.p({1e-9, 1e-9}), *design.p({1e-9}));
}

TEST(SequentialTest, ALookWithoutAPHasSpentItsShare) {
  const SequentialDesign design{3};
  EXPECT_FALSE(design.p({}));
  EXPECT_FALSE(design.p({std::nullopt, std::nan("")}));
  EXPECT_EQ(design.p({std::nullopt, 0.01}), design.p({1, 0.01}));
  EXPECT_EQ(design.p({1.0}), 1.0);
}

TEST(SequentialTest, ALookThatMaySpendNothingSaysNothing) {
  for (const std::size_t looks : {20, 100, 5000}) {
    const SequentialDesign design{looks};
    EXPECT_LT(design.level_at(0), 1);
    EXPECT_FALSE(t_interval({1, 2, 3}, design.level_at(0))) << looks;
    EXPECT_GE(*design.p({1e-6}), 1);
    EXPECT_TRUE(t_interval({1, 2, 3}, design.level_at(looks - 1)));
  }
  EXPECT_EQ(SequentialDesign{5000}.p({0}), 1) << "nothing was spent";
}

TEST(SequentialTest, LooksAndLevelsAreChecked) {
  EXPECT_THROW(SequentialDesign(0), Error);
  EXPECT_THROW(SequentialDesign(3, 1.0), Error);
  EXPECT_THROW(SequentialDesign{3}.level_at(3), Error);
  EXPECT_THROW(SequentialDesign{1}.p({0.1, 0.1}), Error);
}

}  // namespace
}  // namespace abl::statistics
