// SPDX-License-Identifier: Apache-2.0
#include "statistics/agreement.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace abl::statistics {
namespace {

TEST(SignAgreementTest, CountsRowsThatDifferInBothColumns) {
  const auto signs = sign_agreement({0.5, -1, 2, 0, -3, std::nan("")}, {2, -5, -1, 1, 0, 1});
  EXPECT_EQ(signs->compared, 3);
  EXPECT_EQ(signs->agree, 2);
  EXPECT_DOUBLE_EQ(signs->share, 2.0 / 3);
}

TEST(SignAgreementTest, WithoutARowToCompareNothingIsKnown) {
  EXPECT_FALSE(sign_agreement({}, {}));
  EXPECT_FALSE(sign_agreement({0, 0}, {1, 2}));
  EXPECT_FALSE(sign_agreement({1}, {1, 2}));
  EXPECT_FALSE(sign_agreement({std::nan("")}, {1}));
  EXPECT_EQ(sign_agreement({std::numeric_limits<double>::infinity()}, {1})->agree, 1);
  EXPECT_THROW(sign_agreement({1}, {1}, 0), Error);
}

}  // namespace
}  // namespace abl::statistics
