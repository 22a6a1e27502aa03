// SPDX-License-Identifier: Apache-2.0
#include "statistics/agreement.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "base/error.h"

namespace abl::statistics {
namespace {

TEST(KendallTest, TheSameOrderOfFewRowsMayBeChance) {
  const auto same = kendall_tau_b({1, 2, 3, 4, 5, 6}, {10, 20, 30, 40, 50, 60});
  EXPECT_EQ(same->tau, 1);
  EXPECT_EQ(same->interval->high, 1);
  EXPECT_NEAR(same->interval->low, 0.39, 0.01);
  const auto reversed = kendall_tau_b({1, 2, 3, 4, 5, 6}, {60, 50, 40, 30, 20, 10});
  EXPECT_EQ(reversed->tau, -1);
  EXPECT_EQ(reversed->interval->low, -1);
  EXPECT_EQ(reversed->interval->high, -same->interval->low);
  EXPECT_EQ(kendall_tau_b({1, 2, 2, 3}, {5, 4, 4, 1})->tau, -1) << "ties in both columns alike";
}

TEST(KendallTest, FourRowsHaveNoInterval) {
  EXPECT_FALSE(kendall_tau_b({1, 2, 3, 4}, {1, 2, 4, 3})->interval);
  EXPECT_TRUE(kendall_tau_b({1, 2, 3, 4, 5}, {1, 2, 3, 5, 4})->interval);
}

TEST(KendallTest, IntervalsHoldTheTrueTauAsOftenAsTheySay) {
  std::mt19937_64 random{3};
  std::normal_distribution<double> normal;
  constexpr int kSamples = 2000;
  for (const double tau : {0.0, 0.3, 0.8}) {
    const double rho = std::sin(tau * std::numbers::pi / 2);
    for (const std::size_t rows : {8, 18}) {
      int held = 0;
      for (int i = 0; i < kSamples; ++i) {
        std::vector<double> a(rows), b(rows);
        for (std::size_t row = 0; row < rows; ++row) {
          a[row] = normal(random);
          b[row] = std::exp(rho * a[row] + std::sqrt(1 - rho * rho) * normal(random));  // of any scale
        }
        const auto interval = kendall_tau_b(a, b)->interval;
        held += interval->low <= tau && tau <= interval->high;
      }
      EXPECT_NEAR(held, 0.955 * kSamples, 0.025 * kSamples) << "tau " << tau << ", rows " << rows;
    }
  }
}

TEST(KendallTest, NeedsTwoRowsThatDifferInBothColumns) {
  EXPECT_FALSE(kendall_tau_b({}, {}));
  EXPECT_FALSE(kendall_tau_b({1}, {1}));
  EXPECT_FALSE(kendall_tau_b({1, 1, 1}, {1, 2, 3}));
  EXPECT_FALSE(kendall_tau_b({1, 2, 3}, {1, 2}));
  EXPECT_FALSE(kendall_tau_b({1, std::nan("")}, {1, 2}));
  EXPECT_FALSE(kendall_tau_b({1, 2}, {1, std::numeric_limits<double>::infinity()}));
  EXPECT_THROW(kendall_tau_b({1, 2}, {1, 2}, 1), Error);
}

}  // namespace
}  // namespace abl::statistics
