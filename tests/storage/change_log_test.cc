// SPDX-License-Identifier: Apache-2.0
#include "storage/change_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace abl::storage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ChangeLogTest, SaysOnceWhatWasTouchedSinceANumber) {
  ChangeLog log{100};
  log.add({.trials = {3, 1, 3}, .sweeps = {7}});
  const std::uint64_t before = log.number();
  log.add({.trials = {2, 1}});
  const auto all = log.since(100), since = log.since(before), none = log.since(log.number());
  EXPECT_TRUE(all.complete && since.complete && none.complete);
  EXPECT_THAT(all.touched.trials, ElementsAre(1, 2, 3));
  EXPECT_THAT(all.touched.sweeps, ElementsAre(7));
  EXPECT_THAT(since.touched.trials, ElementsAre(1, 2));
  EXPECT_THAT(since.touched.sweeps, IsEmpty());
  EXPECT_TRUE(none.touched.empty());
  EXPECT_EQ(all.number, log.number());
}

TEST(ChangeLogTest, WhatIsTooLongAgoIsSaidToBeUnknown) {
  ChangeLog log{0, 3};
  log.add({.trials = {1, 2, 3, 4}});
  EXPECT_FALSE(log.since(0).complete) << "trial 1 is forgotten";
  EXPECT_TRUE(log.since(1).complete);
  EXPECT_THAT(log.since(1).touched.trials, ElementsAre(2, 3, 4));
}

TEST(ChangeLogTest, ANumberOfAnotherStartIsUnknown) {
  ChangeLog log{1000};
  log.add({.trials = {1}});
  EXPECT_FALSE(log.since(7).complete);
  EXPECT_FALSE(log.since(5000).complete);
}

}  // namespace
}  // namespace abl::storage
