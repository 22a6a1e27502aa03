// SPDX-License-Identifier: Apache-2.0
#include "statistics/holm.h"

#include <gtest/gtest.h>

#include <cmath>

namespace abl::statistics {
namespace {

TEST(HolmTest, WhatIsNotKnownIsNoTestOfTheFamily) {
  const auto corrected = holm({0.01, std::nullopt, 0.04, std::nan(""), 1.5, -0.1});
  EXPECT_EQ(corrected[0], 0.02);
  EXPECT_EQ(corrected[2], 0.04);
  for (const int i : {1, 3, 4, 5}) EXPECT_FALSE(corrected[static_cast<std::size_t>(i)]) << i;
}

TEST(HolmTest, KeepsTheOrderOfTheRowsAndNeverExceedsOne) {
  const auto corrected = holm({0.9, 0.001, 0.8, 0.001});
  EXPECT_EQ(corrected[0], 1);
  EXPECT_EQ(corrected[1], 0.004);
  EXPECT_EQ(corrected[2], 1);
  EXPECT_EQ(corrected[3], 0.004);
  EXPECT_TRUE(holm({}).empty());
}

}  // namespace
}  // namespace abl::statistics
