// SPDX-License-Identifier: Apache-2.0
#include "images/random.h"

#include <gtest/gtest.h>

#include <array>

#include "images/timm_mixing.h"
#include "tests/images/moments.h"

namespace abl::images {
namespace {

constexpr int kRandomDraws = 200'000;

TEST(RandomTest, StreamsKeepTheirNumbers) {
  // a change here changes every result: the trainer's result version must be raised with it
  RandomStream random{1, Purpose::kAugmentation, {2, 3}};
  for (const std::uint64_t expected :
       std::array<std::uint64_t, 3>{0x67353650248bb34cU, 0x276cbf7ca2d66f79U, 0xd7fe6b3424a91ddeU})
    EXPECT_EQ(random.next(), expected);
}

TEST(RandomTest, NormalDrawsHaveTheNormalsMoments) {
  RandomStream random{1, Purpose::kAugmentation};
  expect_moments(0, 1, 3, kRandomDraws, [&] { return random.normal(); });
  // of the cube: mean 0 (no skew), variance 15, kurtosis 10395/225
  expect_moments(0, 15, 46.2, kRandomDraws, [&] { return std::pow(random.normal(), 3); });
}

TEST(RandomTest, NormalDrawsFallIntoTheNormalsParts) {
  RandomStream random{2, Purpose::kAugmentation};
  std::array<int, 3> within{};
  for (int i = 0; i < kRandomDraws; ++i) {
    const double size = std::abs(random.normal());
    for (int s = 0; s < 3; ++s) within[s] += size < s + 1;
  }
  for (int s = 0; s < 3; ++s) expect_share(std::erf((s + 1) / std::sqrt(2.0)), within[s], kRandomDraws);
}

TEST(RandomTest, GammaDrawsHaveTheGammasMoments) {
  for (const double shape : {0.1, 0.5, 1.0, 2.5, 40.0}) {
    SCOPED_TRACE(shape);
    RandomStream random{3, Purpose::kAugmentation};
    expect_moments(shape, shape, 3 + 6 / shape, kRandomDraws, [&] { return gamma(random, shape); });
  }
}

TEST(RandomTest, BetaDrawsHaveTheBetasMoments) {
  for (const auto& [a, b] : {std::pair{0.1, 0.1},
                             {0.2, 0.2},
                             {0.5, 0.5},
                             {0.8, 0.8},
                             {1.0, 1.0},
                             {0.2, 0.9},
                             {2.0, 2.0},
                             {0.5, 3.0}}) {
    SCOPED_TRACE(testing::Message() << a << ", " << b);
    RandomStream random{4, Purpose::kAugmentation};
    const double sum = a + b, variance = a * b / (sum * sum * (sum + 1));
    const double excess =
        6 * ((a - b) * (a - b) * (sum + 1) - a * b * (sum + 2)) / (a * b * (sum + 2) * (sum + 3));
    expect_moments(a / sum, variance, 3 + excess, kRandomDraws, [&] { return beta(random, a, b); });
  }
}

TEST(RandomTest, BetaDrawsOfTinyParametersAreStillNumbers) {
  RandomStream random{5, Purpose::kAugmentation};
  int high = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double share = beta(random, 1e-4, 1e-4);
    ASSERT_TRUE(share >= 0 && share <= 1) << share;
    high += share > 0.5;
  }
  expect_share(0.5, high, 10'000);
}

}  // namespace
}  // namespace abl::images
