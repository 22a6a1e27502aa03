// SPDX-License-Identifier: Apache-2.0
#include "scoring/nearest_neighbours.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/error_of.h"

namespace abl::scoring {
namespace {

using testing::ElementsAre;

TEST(NearestNeighboursTest, VotesByTheExponentOfSimilarity) {
  // exp(0.9 / 0.07) is 4.2 exp(0.8 / 0.07): one near neighbour outweighs four that are farther, and not five
  const std::vector<float> similarities{0.9f, 0.8f, 0.8f, 0.8f, 0.8f, 0.8f};
  const std::vector<int> labels{2, 0, 0, 0, 0, 0};
  EXPECT_THAT(vote(similarities, labels, {.neighbours = 5, .classes = 4}), ElementsAre(2, 0, 1, 3));
  EXPECT_THAT(vote(similarities, labels, {.neighbours = 6, .classes = 4}), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(vote(similarities, labels, {.neighbours = 5, .classes = 4, .temperature = 1}),
              ElementsAre(0, 2, 1, 3));
}

TEST(NearestNeighboursTest, DoesNotOverflow) {
  EXPECT_THAT(vote(std::vector{1.0f, 1.0f, -1.0f}, std::vector{1, 1, 0},
                   {.neighbours = 3, .classes = 2, .temperature = 1e-3}),
              ElementsAre(1, 0));
}

TEST(NearestNeighboursTest, RefusesWhatIsNoVote) {
  const std::vector<float> similarities{0.5f, 0.6f};
  const std::vector<int> labels{0, 1};
  EXPECT_EQ(error_of([&] { vote(similarities, labels, {.neighbours = 2, .classes = 2}); }),
            "similarities are not sorted; expected the highest first");
  EXPECT_EQ(error_of([&] { vote(similarities, labels, {.neighbours = 3, .classes = 2}); }),
            "2 similarities and 2 labels for a vote of 3; expected as many of both, and at least those");
  EXPECT_EQ(error_of([&] {
              vote(std::vector{0.6f, 0.5f}, labels, {.neighbours = 2, .classes = 1});
            }),
            "label 1; expected 0 to 0");
  EXPECT_EQ(error_of([&] {
              vote(std::vector{0.6f, 0.5f}, labels, {.neighbours = 2, .classes = 2, .temperature = 0});
            }),
            "temperature 0; expected a number above 0");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(error_of([&] {
              vote(std::vector{0.6f, nan}, labels, {.neighbours = 2, .classes = 2});
            }),
            "similarities are not sorted; expected the highest first");
}

}  // namespace
}  // namespace abl::scoring
