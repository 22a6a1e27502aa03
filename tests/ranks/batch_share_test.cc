// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/ranks/batch_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "config/recipe/most_ranks.h"

namespace abl::ranks {
namespace {

TEST(BatchShareTest, TheRanksHaveEveryPlaceOfTheBatchOnce) {
  for (const std::int64_t size : {1, 7, 12, 20, 33})
    for (const int ranks : {1, 2, 3, 8}) {
      std::vector<std::int64_t> all;
      for (int rank = 0; rank < ranks; ++rank) {
        const auto own = places_of(rank, ranks, size);
        EXPECT_TRUE(std::ranges::is_sorted(own));
        all.insert(all.end(), own.begin(), own.end());
      }
      std::ranges::sort(all);
      std::vector<std::int64_t> expected(static_cast<std::size_t>(size));
      std::iota(expected.begin(), expected.end(), 0);
      EXPECT_EQ(all, expected) << size << " images, " << ranks << " ranks";
    }
}

TEST(BatchShareTest, ImagesThatAreMixedWithEachOtherAreOppositeOnTheirRankToo) {
  for (const std::int64_t size : {16, 21})
    for (int rank = 0; rank < 3; ++rank) {
      const auto own = places_of(rank, 3, size);
      for (std::size_t i = 0; i < own.size(); ++i) EXPECT_EQ(own[own.size() - 1 - i], size - 1 - own[i]);
    }
}

TEST(BatchShareTest, OneRankHasThePartsOfTheBatch) {
  const auto share = share_batch(0, 1, 20, 3);
  ASSERT_EQ(share.parts.size(), 3U);
  EXPECT_EQ(share.parts[0].size, 7);
  EXPECT_EQ(share.parts[2].first, 14);
  EXPECT_EQ(share.parts[2].size, 6);
  EXPECT_EQ(share.parts[2].weight, 6.0 / 20);
  EXPECT_EQ(share_batch(0, 1, 20, 1).parts[0].weight, 1) << "no rounding where there is nothing to weigh";
}

TEST(BatchShareTest, ARanksPartIsItsPlacesOfThatPart) {
  const auto share = share_batch(1, 2, 20, 2);
  ASSERT_EQ(share.parts.size(), 2U);
  for (const auto& [first, size, weight] : share.parts) {
    EXPECT_EQ(size, 5);
    EXPECT_EQ(weight, 0.5);
  }
  for (std::size_t i = 0; i < share.places.size(); ++i) EXPECT_EQ(share.places[i] < 10, i < 5);
}

TEST(BatchShareTest, WeightsMakeTheMeanOverRanksThatOfTheBatch) {
  for (const int parts : {1, 2, 3}) {
    double of_all = 0;
    for (int rank = 0; rank < 3; ++rank)
      for (const auto& part : share_batch(rank, 3, 20, parts).parts) of_all += part.weight;
    EXPECT_NEAR(of_all / 3, 1, 1e-12);
  }
}

TEST(BatchShareTest, ABatchThatLeavesARankWithoutAnImageIsRefused) {
  EXPECT_NO_THROW(share_batch(0, 2, 4, 1));
  try {
    share_batch(0, 4, 6, 1);
    FAIL() << "3 pairs for 4 ranks";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    EXPECT_STREQ(error.what(),
                 "recipe.batch: 6 images in parts of 6 leave rank 3 of 4 without one; expected at least 8 in "
                 "a part: take fewer ranks or parts");
  }
  EXPECT_THROW(share_batch(0, 2, 20, 20), Error);
}

TEST(BatchShareTest, AsManyRanksShareABatchAsIsSaidBeforeTheyAreStarted) {
  for (std::int64_t size = 1; size <= 20; ++size)
    for (int parts = 1; parts <= size; ++parts)
      for (int ranks = 1; ranks <= 11; ++ranks) {
        const auto share = [&] { share_batch(0, ranks, size, parts); };
        if (ranks <= config::most_ranks(size, parts))
          EXPECT_NO_THROW(share()) << size << " images, " << parts << " parts, " << ranks << " ranks";
        else
          EXPECT_THROW(share(), Error) << size << " images, " << parts << " parts, " << ranks << " ranks";
      }
}

}  // namespace
}  // namespace abl::ranks
