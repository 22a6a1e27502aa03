// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <numeric>
#include <set>

#include "base/error.h"
#include "data/order.h"

namespace abl::trainer {
namespace {

using Label = std::function<int(std::int64_t number, std::size_t place)>;

/// Batches of images of a pixel whose labels tell what they are.
tasks::Loader::Plan labelled(std::size_t images, const Label& label) {
  return [images, label](std::int64_t number) {
    return tasks::BatchPlan{
        .indices = std::vector<std::uint32_t>(images),
        .prepare = [number, label](std::uint32_t, std::size_t place) -> std::optional<data::Prepared> {
          // before the pixels: of an aggregate that throws half-way g++ 12 destroys a nested
          // part twice
          const int told = label(number, place);
          return data::Prepared{.image = {1, 1, {0, 0, 0}}, .erasure = {}, .label = told};
        }};
  };
}

const tasks::Loader::Plan kNumbered = labelled(1, [](std::int64_t number, std::size_t) { return number; });

tasks::LoaderOptions options(int threads, int ahead) {
  return {.threads = threads, .ahead = ahead, .collation = {.image_size = 1}};
}

TEST(LoaderTest, HandsBatchesOutInOrderWhateverTheThreads) {
  for (const int threads : {1, 4}) {
    tasks::Loader loader{3, 50, options(threads, 5), kNumbered};
    for (std::int64_t expected = 3; expected < 53; ++expected) {
      const auto batch = loader.next();
      ASSERT_TRUE(batch.has_value());
      EXPECT_EQ(batch->labels.item<std::int64_t>(), expected);
    }
    EXPECT_FALSE(loader.next()) << "after the last batch there is none";
  }
}

TEST(LoaderTest, AllThreadsShareOneBatch) {
  constexpr int kThreads = 3;
  std::latch together{kThreads};
  tasks::Loader loader{0, 1, options(kThreads, 1), labelled(kThreads, [&](std::int64_t, std::size_t place) {
                         together.arrive_and_wait();  // for ever, if one thread had to make them one by one
                         return static_cast<int>(place);
                       })};
  EXPECT_TRUE(torch::equal(loader.next()->labels, torch::arange(kThreads)));
}

TEST(LoaderTest, WhatABatchHoldsDoesNotDependOnWhoMadeWhichImage) {
  std::vector<tasks::Batch> made;
  for (const int threads : {1, 5}) {
    tasks::Loader loader{
        0, 1, {.threads = threads, .ahead = 1, .collation = {.image_size = 2}}, [](std::int64_t) {
          tasks::BatchPlan plan{.indices = std::vector<std::uint32_t>(40), .prepare = {}};
          std::iota(plan.indices.begin(), plan.indices.end(), 0u);
          plan.prepare = [](std::uint32_t index, std::size_t) -> std::optional<data::Prepared> {
            if (index % 7 == 3) return std::nullopt;  // left out: those behind it move up
            data::Prepared prepared{
                .image = {2, 2, std::vector<std::uint8_t>(12, static_cast<std::uint8_t>(index))},
                .erasure = {}};
            if (index % 2 == 0)
              prepared.erasure = images::Erasure{.rectangle = {.width = 1, .height = 2}, .noise_seed = index};
            prepared.label = static_cast<int>(index);
            return prepared;
          };
          return plan;
        }};
    made.push_back(*loader.next());
  }
  EXPECT_EQ(made[0].labels.numel(), 34);
  EXPECT_TRUE(
      torch::equal(made[0].images.select(1, 0).select(1, 0).select(1, 0).to(torch::kLong), made[0].labels));
  EXPECT_TRUE(torch::equal(made[0].images, made[1].images));
  EXPECT_TRUE(torch::equal(made[0].labels, made[1].labels));
  ASSERT_EQ(made[0].erased.size(), made[1].erased.size());
  for (std::size_t i = 0; i < made[0].erased.size(); ++i) {
    const auto& patch = made[0].erased[i];
    EXPECT_EQ(patch.image, made[1].erased[i].image);
    EXPECT_EQ(made[0].labels[patch.image].item<std::int64_t>() % 2, 0) << "it moved with its image";
    EXPECT_TRUE(torch::equal(patch.noise, made[1].erased[i].noise));
  }
}

TEST(LoaderTest, ThrowsWhatABatchThrewAtItsPlace) {
  const auto broken_picture = [](std::int64_t number, std::size_t place) {
    if (number == 1 && place > 0) throw Error{Code::kDataLoss, "broken picture " + std::to_string(place)};
    return static_cast<int>(number);
  };
  const auto broken_plan = [](std::int64_t number) {
    if (number == 1) throw Error{Code::kDataLoss, "broken picture 1"};
    return kNumbered(number);
  };
  for (const auto& plan : {labelled(4, broken_picture), tasks::Loader::Plan{broken_plan}}) {
    tasks::Loader loader{0, 3, options(2, 4), plan};
    EXPECT_TRUE(loader.next());
    try {
      loader.next();
      ADD_FAILURE() << "it was not thrown";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "broken picture 1") << "the first of several";
    }
    EXPECT_EQ(loader.next()->labels[0].item<std::int64_t>(), 2);
  }
}

TEST(LoaderTest, StaysAtMostSoFarAhead) {
  std::atomic<std::int64_t> newest = -1;
  tasks::Loader loader{0, 1000, options(3, 4), [&](std::int64_t number) {
                         newest = number;  // they are planned in order
                         return kNumbered(number);
                       }};
  for (std::int64_t taken = 1; taken <= 100; ++taken) {
    ASSERT_TRUE(loader.next());
    ASSERT_LT(newest, taken + 4);
  }
}

TEST(LoaderTest, HowFarAheadIsBoundedInBytes) {
  constexpr std::int64_t kMost = std::int64_t{512} << 20;
  for (const auto& [images, size, threads] :
       {std::tuple{64, 32, 8}, {1024, 224, 8}, {4096, 224, 1}, {4096, 224, 64}, {4096, 384, 64}}) {
    const int ahead = tasks::batches_ahead(images, size, threads);
    const std::int64_t bytes = std::int64_t{3} * size * size * images;
    EXPECT_GE(ahead, 1) << "or the threads would wait for every step";
    EXPECT_LE(ahead, 2 * threads + 2);
    EXPECT_TRUE(ahead == 1 || ahead * bytes <= kMost) << images << " images of " << size << " pixels";
  }
  EXPECT_EQ(tasks::batches_ahead(64, 32, 8), 18) << "small ones as before";
  EXPECT_EQ(tasks::batches_ahead(4096, 224, 64), 1);
}

TEST(LoaderTest, ASlowBatchDoesNotHoldTheOthersThatMayBeMade) {
  constexpr int kAhead = 6;
  std::latch others{kAhead - 1};
  tasks::Loader loader{0, 100, options(2, kAhead), labelled(1, [&](std::int64_t number, std::size_t) {
                         if (number == 0)
                           others.wait();  // for ever, if one of them had to wait for this one
                         else if (number < kAhead)
                           others.count_down();
                         return static_cast<int>(number);
                       })};
  for (std::int64_t expected = 0; expected < 100; ++expected)
    ASSERT_EQ(loader.next()->labels.item<std::int64_t>(), expected);
}

TEST(LoaderTest, ABatchWithoutImagesIsHandedOutToo) {  // of a rank whose share of the last one is none
  tasks::Loader loader{0, 3, options(2, 2), labelled(0, [](std::int64_t, std::size_t) { return 0; })};
  for (int batch = 0; batch < 3; ++batch) EXPECT_EQ(loader.next()->labels.numel(), 0);
  EXPECT_FALSE(loader.next());
}

TEST(LoaderTest, CanBeLeftInTheMiddle) {
  tasks::Loader loader{0, 1'000'000, options(2, 8), kNumbered};
  EXPECT_TRUE(loader.next());
}

TEST(CollateTest, ReplacesASkippedImageInTrainingAndLeavesItOutInEvaluation) {
  const tasks::Prepare prepare = [](std::uint32_t index, std::size_t) -> std::optional<data::Prepared> {
    if (index == 2) return std::nullopt;
    return data::Prepared{.image = {1, 1, {static_cast<std::uint8_t>(index), 0, 0}},
                          .erasure = {},
                          .label = static_cast<int>(index)};
  };
  EXPECT_TRUE(torch::equal(tasks::collate({1, 2, 0}, {.replace_among = 4, .image_size = 1}, prepare).labels,
                           torch::tensor({1, 3, 0}, torch::kInt64)));
  EXPECT_TRUE(torch::equal(tasks::collate({1, 2, 0}, {.image_size = 1}, prepare).labels,
                           torch::tensor({1, 0}, torch::kInt64)));
  EXPECT_THROW(tasks::collate({2}, {.replace_among = 3, .image_size = 1},
                              [](std::uint32_t, std::size_t) { return std::optional<data::Prepared>{}; }),
               Error);
}

TEST(CollateTest, KeepsWhatIsToBeErasedWithItsNoise) {
  const auto batch = tasks::collate(
      {0, 1}, {.image_size = 4}, [](std::uint32_t index, std::size_t place) -> std::optional<data::Prepared> {
        EXPECT_EQ(index, place);
        data::Prepared prepared{.image = images::black(4, 4), .erasure = {}};
        if (index == 1)
          prepared.erasure =
              images::Erasure{.rectangle = {.left = 1, .top = 2, .width = 3, .height = 1}, .noise_seed = 5};
        return prepared;
      });
  ASSERT_EQ(batch.erased.size(), 1u);
  EXPECT_EQ(batch.erased[0].image, 1);
  EXPECT_EQ(batch.erased[0].noise.sizes(), (torch::IntArrayRef{3, 1, 3}));
}

TEST(EpochOrderTest, IsAShuffleOfItsOwnForEachEpochAndSeed) {
  data::EpochOrder order{7, 1000}, same{7, 1000}, other{8, 1000};
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
