// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <set>

#include "base/error.h"
#include "worker/trainer/data/epoch_order.h"

namespace abl::trainer {
namespace {

Batch numbered(std::int64_t number) { return {.images = {}, .labels = torch::tensor({number})}; }

TEST(LoaderTest, HandsBatchesOutInOrderWhateverTheThreads) {
  for (const int threads : {1, 4}) {
    Loader loader{3, 50, threads, 5, numbered};
    for (std::int64_t expected = 3; expected < 53; ++expected) {
      const auto batch = loader.next();
      ASSERT_TRUE(batch.has_value());
      EXPECT_EQ(batch->labels.item<std::int64_t>(), expected);
    }
    EXPECT_FALSE(loader.next()) << "after the last batch there is none";
  }
}

TEST(LoaderTest, ThrowsWhatABatchThrewAtItsPlace) {
  Loader loader{0, 3, 2, 4, [](std::int64_t number) {
                  if (number == 1) throw Error{Code::kDataLoss, "broken picture"};
                  return numbered(number);
                }};
  EXPECT_TRUE(loader.next());
  EXPECT_THROW(loader.next(), Error);
  EXPECT_EQ(loader.next()->labels.item<std::int64_t>(), 2);
}

TEST(LoaderTest, StaysAtMostSoFarAhead) {
  std::atomic<std::int64_t> newest = -1;
  Loader loader{0, 1000, 3, 4, [&](std::int64_t number) {
                  for (auto seen = newest.load();
                       number > seen && !newest.compare_exchange_weak(seen, number);) {
                  }
                  return numbered(number);
                }};
  for (std::int64_t taken = 1; taken <= 100; ++taken) {
    ASSERT_TRUE(loader.next());
    ASSERT_LT(newest, taken + 4);
  }
}

TEST(LoaderTest, ASlowBatchDoesNotHoldTheOthersThatMayBeMade) {
  constexpr int kAhead = 6;
  std::latch others{kAhead - 1};
  Loader loader{0, 100, 2, kAhead, [&](std::int64_t number) {
                  if (number == 0)
                    others.wait();  // for ever, if one of them had to wait for this one
                  else if (number < kAhead)
                    others.count_down();
                  return numbered(number);
                }};
  for (std::int64_t expected = 0; expected < 100; ++expected)
    ASSERT_EQ(loader.next()->labels.item<std::int64_t>(), expected);
}

TEST(LoaderTest, CanBeLeftInTheMiddle) {
  Loader loader{0, 1'000'000, 2, 8, numbered};
  EXPECT_TRUE(loader.next());
}

TEST(CollateTest, ReplacesASkippedImageInTrainingAndLeavesItOutInEvaluation) {
  const Prepare prepare = [](std::uint32_t index, std::size_t) -> std::optional<Prepared> {
    if (index == 2) return std::nullopt;
    return Prepared{.view = {.image = {1, 1, {static_cast<std::uint8_t>(index), 0, 0}}, .erasure = {}},
                    .label = static_cast<int>(index)};
  };
  EXPECT_TRUE(torch::equal(collate({1, 2, 0}, {.replace_among = 4, .image_size = 1}, prepare).labels,
                           torch::tensor({1, 3, 0}, torch::kInt64)));
  EXPECT_TRUE(torch::equal(collate({1, 2, 0}, {.image_size = 1}, prepare).labels,
                           torch::tensor({1, 0}, torch::kInt64)));
  EXPECT_THROW(collate({2}, {.replace_among = 3, .image_size = 1},
                       [](std::uint32_t, std::size_t) { return std::optional<Prepared>{}; }),
               Error);
}

TEST(CollateTest, KeepsWhatIsToBeErasedWithItsNoise) {
  const auto batch = collate(
      {0, 1}, {.image_size = 4}, [](std::uint32_t index, std::size_t place) -> std::optional<Prepared> {
        EXPECT_EQ(index, place);
        View view{.image = black(4, 4), .erasure = {}};
        if (index == 1)
          view.erasure =
              Erasure{.rectangle = {.left = 1, .top = 2, .width = 3, .height = 1}, .noise_seed = 5};
        return Prepared{.view = std::move(view), .label = 0};
      });
  ASSERT_EQ(batch.patches.size(), 1u);
  EXPECT_EQ(batch.patches[0].image, 1);
  EXPECT_EQ(batch.patches[0].noise.sizes(), (torch::IntArrayRef{3, 1, 3}));
}

TEST(EpochOrderTest, IsAShuffleOfItsOwnForEachEpochAndSeed) {
  EpochOrder order{7, 1000}, same{7, 1000}, other{8, 1000};
  const auto first = *order.of(0), second = *order.of(1);
  EXPECT_EQ(std::set<std::uint32_t>(first.begin(), first.end()).size(), 1000u);
  EXPECT_EQ(std::ranges::max(first), 999u);
  EXPECT_NE(first, second);
  EXPECT_EQ(first, *order.of(0)) << "asked again after another epoch it is the same";
  EXPECT_EQ(first, *same.of(0));
  EXPECT_NE(first, *other.of(0));
}

}  // namespace
}  // namespace abl::trainer
