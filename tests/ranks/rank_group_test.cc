// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/ranks/rank_group.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/ranks/threads_as_ranks.h"

namespace abl::ranks {
namespace {

TEST(RankGroupTest, ASumIsTheSameOnAllRanks) {
  as_ranks(3, [](RankGroup& group) {
    auto values = torch::tensor({1.5, 10.0 * group.rank()}, torch::kFloat64);
    group.sum(values);
    EXPECT_TRUE(torch::equal(values, torch::tensor({4.5, 30.0}, torch::kFloat64)));
  });
}

TEST(RankGroupTest, WhatIsSharedIsTheFirstRanks) {
  as_ranks(2, [](RankGroup& group) {
    const auto numbers = torch::full({3}, group.rank() + 1.0), counts = torch::full({}, 7 - group.rank());
    group.share({numbers, counts});
    EXPECT_TRUE(torch::equal(numbers, torch::ones({3})));
    EXPECT_EQ(counts.item<int>(), 7);
    EXPECT_TRUE(group.as_first(group.first()));
    EXPECT_FALSE(group.as_first(!group.first()));
  });
}

TEST(RankGroupTest, RowsAreGatheredInTheOrderOfTheRanks) {
  as_ranks(3, [](RankGroup& group) {
    const auto rows = group.gather(torch::full({2}, group.rank(), torch::kUInt8));
    EXPECT_TRUE(torch::equal(rows.select(1, 0), torch::tensor({0, 1, 2}, torch::kUInt8)));
  });
}

TEST(RankGroupTest, ARankAloneLeavesEverythingAsItIs) {
  RankGroup alone;
  auto values = torch::ones({2});
  alone.sum(values);
  alone.share({values});
  EXPECT_TRUE(torch::equal(values, torch::ones({2})));
  EXPECT_TRUE(torch::equal(alone.gather(values), torch::ones({1, 2})));
  EXPECT_TRUE(alone.as_first(true));
  EXPECT_TRUE(alone.alone() && alone.first());
}

TEST(RankGroupTest, AGoneRankIsALostConnection) {
  as_ranks(2, [](RankGroup& group) {
    auto values = torch::ones({1});
    group.sum(values);
    if (!group.first()) return;  // goes
    try {
      for (;;) group.sum(values);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kUnavailable);
      EXPECT_TRUE(std::string_view{error.what()}.starts_with(kLostRanks)) << error.what();
    }
  });
}

TEST(RankGroupTest, AnErrorOfTheComputationIsNotALostConnection) {
  EXPECT_THROW(reach_ranks([] { torch::ones({2}).view({3}); }), c10::Error);
  try {
    reach_ranks([] { throw Error{Code::kOutOfRange, "too far"}; });
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "too far");
  }
}

TEST(RankGroupTest, ARankThatFindsNobodySaysSo) {
  std::string address;
  { address = RendezvousServer{}.rendezvous().text(); }  // nobody listens there any longer
  try {
    RankGroup group{{.rank = 0,
                     .ranks = 2,
                     .rendezvous = parse_rendezvous(address),
                     .patience = std::chrono::milliseconds{1}}};
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnavailable);
  }
}

TEST(RendezvousTest, AnAddressIsHostAndPort) {
  const auto place = parse_rendezvous("node-1:29500");
  EXPECT_EQ(place.host, "node-1");
  EXPECT_EQ(place.port, 29500);
  EXPECT_EQ(parse_rendezvous("::1:80").host, "::1");
  for (const char* wrong : {"", "node", "node:", ":80", "node:80a", "node:0", "node:70000"})
    EXPECT_THROW(parse_rendezvous(wrong), Error) << wrong;
}

}  // namespace
}  // namespace abl::ranks
