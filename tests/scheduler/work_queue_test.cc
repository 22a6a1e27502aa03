// SPDX-License-Identifier: Apache-2.0
#include "scheduler/work_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace abl::scheduler {
namespace {

using namespace std::chrono_literals;
using storage::OpenTrial;
using storage::TrialId;
using testing::ElementsAre;
using testing::IsEmpty;

class WorkQueueTest : public testing::Test {
 protected:
  WorkQueueTest() {
    queue.put_shape(1, {});
    queue.put_shape(2, {.gpus = 4});
  }
  void sweep(storage::SweepId id, int priority = 0, bool active = true) {
    queue.put_sweep({.id = id, .active = active, .priority = priority});
  }
  void trial(TrialId id, std::vector<OpenTrial::Claim> claims, storage::ShapeId shape = 1,
             Time not_before = {}) {
    queue.put({.id = id, .shape = shape, .not_before = not_before, .claims = std::move(claims)}, now);
  }
  void under_way(TrialId id, std::vector<OpenTrial::Claim> claims, storage::ShapeId shape = 1) {
    queue.put({.id = id, .shape = shape, .under_way = true, .claims = std::move(claims)}, now);
  }
  TrialId next(const std::set<LaneId>& blocked = {}) const {
    const auto found = queue.next(blocked);
    return found ? found->trial : 0;
  }
  /// Takes trials until there is none.
  std::vector<TrialId> drain() {
    std::vector<TrialId> order;
    while (const TrialId id = next()) {
      queue.take(id);
      order.push_back(id);
    }
    return order;
  }

  WorkQueue queue;
  Time now{std::chrono::hours{1000}};
};

TEST_F(WorkQueueTest, AnUnmeasuredTrialThatNeedsAGpuOfItsOwnDoesNotBlockThoseThatMayShareOne) {
  sweep(1);
  const auto packed = [&](TrialId id, const char* pack) {
    queue.put({.id = id, .shape = 1, .pack = pack, .claims = {{1, 0, id}}}, now);
  };
  packed(1, "new");
  packed(2, "known");
  queue.put_memory("known", 1e9);
  const auto first = queue.next({});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->trial, 1u);
  EXPECT_EQ(next({first->lane}), 2u);
  queue.put_memory("new", 1e9);  // as another run of it has said meanwhile
  EXPECT_EQ(next({queue.next({})->lane}), 0u) << "both stand in one lane";
  queue.put_memory("known", 0);
  EXPECT_EQ(next({queue.next({})->lane}), 2u);
  queue.erase(1);
  EXPECT_THAT(drain(), ElementsAre(2));
  queue.put_memory("known", 1e9);
}

TEST_F(WorkQueueTest, TheFirstSeedOfEveryRowGoesBeforeTheSecond) {
  sweep(1);
  trial(1, {{1, 0, 0}});
  trial(2, {{1, 0, 1}});
  trial(3, {{1, 1, 0}});
  trial(4, {{1, 1, 1}});
  EXPECT_THAT(drain(), ElementsAre(1, 3, 2, 4));
}

TEST_F(WorkQueueTest, TheHigherPriorityGoesFirst) {
  sweep(1);
  sweep(2, 5);
  trial(1, {{1, 0, 0}});
  trial(2, {{2, 0, 0}});
  trial(3, {{2, 1, 0}});
  EXPECT_THAT(drain(), ElementsAre(2, 3, 1));
}

TEST_F(WorkQueueTest, ASweepOfTwoDoesNotWaitForOneOfAThousand) {
  sweep(1);
  sweep(2);
  for (std::uint32_t row = 0; row < 1000; ++row) trial(row + 1, {{1, row, 0}});
  trial(2001, {{2, 0, 0}});
  trial(2002, {{2, 1, 0}});
  const auto order = drain();
  EXPECT_THAT((std::vector<TrialId>{order.begin(), order.begin() + 5}), ElementsAre(1, 2001, 2, 2002, 3));
}

TEST_F(WorkQueueTest, TheSweepWithFewerSlotsInUseGoesFirst) {
  sweep(1);
  sweep(2);
  under_way(1, {{1, 0, 0}}, 2);  // four slots
  under_way(2, {{2, 0, 0}});
  for (std::uint32_t i = 1; i <= 4; ++i) {
    trial(10 + i, {{1, i, 0}});
    trial(20 + i, {{2, i, 0}});
  }
  EXPECT_THAT(drain(), ElementsAre(21, 22, 23, 11, 24, 12, 13, 14));
}

TEST_F(WorkQueueTest, OwnersShareBeforeTheirSweepsDo) {
  for (storage::SweepId id = 1; id <= 3; ++id)
    queue.put_sweep({.id = id, .owner = id == 3 ? "bob" : "alice"});
  for (std::uint32_t i = 0; i < 4; ++i)
    for (storage::SweepId id = 1; id <= 3; ++id) trial(10 * id + i, {{id, i, 0}});
  const auto order = drain();
  EXPECT_THAT((std::vector<TrialId>{order.begin(), order.begin() + 8}),
              ElementsAre(10, 30, 20, 31, 11, 32, 21, 33));
}

TEST_F(WorkQueueTest, ASweepOfTwiceTheWeightGetsTwiceAsMany) {
  queue.put_sweep({.id = 1, .weight = 2});
  queue.put_sweep({.id = 2});
  for (std::uint32_t i = 0; i < 30; ++i) {
    trial(100 + i, {{1, i, 0}});
    trial(200 + i, {{2, i, 0}});
  }
  auto order = drain();
  order.resize(30);
  EXPECT_EQ(std::ranges::count_if(order, [](TrialId id) { return id < 200; }), 20);
}

TEST_F(WorkQueueTest, NoMoreTrialsOfASweepAreUnderWayThanItMayHave) {
  queue.put_sweep({.id = 1, .max_running = 2});
  for (TrialId id = 1; id <= 4; ++id) trial(id, {{1, id, 0}});
  EXPECT_THAT(drain(), ElementsAre(1, 2));
  queue.erase(1);
  EXPECT_THAT(drain(), ElementsAre(3));
  queue.put_sweep({.id = 1});
  EXPECT_THAT(drain(), ElementsAre(4));
}

TEST_F(WorkQueueTest, WhatSeveralSweepsWantGoesOnceAndWithTheForemost) {
  sweep(1);
  sweep(2, 3);
  trial(1, {{1, 0, 0}});
  trial(2, {{1, 1, 0}, {2, 7, 0}});
  EXPECT_THAT(drain(), ElementsAre(2, 1));
}

TEST_F(WorkQueueTest, APausedSweepWaitsAndGoesOnWhereItWas) {
  sweep(1, 0, false);
  trial(1, {{1, 0, 0}});
  EXPECT_EQ(next(), 0u);
  sweep(1);
  EXPECT_EQ(next(), 1u);
}

TEST_F(WorkQueueTest, ABackOffIsWaitedFor) {
  sweep(1);
  trial(1, {{1, 0, 0}}, 1, now + 5s);
  EXPECT_EQ(next(), 0u);
  EXPECT_THAT(queue.wake(now + 4s), IsEmpty());
  EXPECT_THAT(queue.wake(now + 5s), ElementsAre(1));
  EXPECT_EQ(next(), 1u);
  EXPECT_THAT(queue.wake(now + 9s), IsEmpty());
}

TEST_F(WorkQueueTest, ALaneThatFindsNoPlaceLetsTheOthersPass) {
  sweep(1);
  trial(1, {{1, 0, 0}}, 2);
  trial(2, {{1, 1, 0}}, 2);
  trial(3, {{1, 2, 0}});
  EXPECT_EQ(next(), 1u);
  EXPECT_EQ(next({queue.next({})->lane}), 3u);
}

TEST_F(WorkQueueTest, ATrialThatAWorkerRefusedIsNoLongerOfItsLane) {
  sweep(1);
  trial(1, {{1, 0, 0}});
  trial(2, {{1, 1, 0}});
  queue.refuse(1, 77, now, now + 30s, "no");
  EXPECT_THAT(queue.demand(1).refused_by, ElementsAre(77));
  EXPECT_EQ(next({queue.next({})->lane}), 2u);
  EXPECT_THAT(queue.wake(now + 30s), ElementsAre(1));
  EXPECT_THAT(queue.demand(1).refused_by, IsEmpty());
  EXPECT_EQ(next({queue.next({})->lane}), 0u) << "they are of one lane again";
}

TEST_F(WorkQueueTest, ATrialThatFailedOnAHostIsKeptFromItForAWhileAfterItsBackOff) {
  sweep(1);
  trial(2, {{1, 1, 0}});
  queue.put({.id = 1, .shape = 1, .not_before = now + 4s, .failed_on = {"bad-host"}, .claims = {{1, 0, 0}}},
            now);
  EXPECT_EQ(next(), 2u) << "the other backs off";
  EXPECT_EQ(queue.why_elsewhere(1), "");
  EXPECT_THAT(queue.wake(now + 4s), ElementsAre(1));
  EXPECT_EQ(next(), 1u);
  EXPECT_THAT(queue.demand(1).failed_on, ElementsAre("bad-host"));
  EXPECT_THAT(queue.why_elsewhere(1), testing::HasSubstr("another host than bad-host"));
  EXPECT_EQ(next({queue.next({})->lane}), 2u) << "who can take the one need not be able to take the other";
  EXPECT_THAT(queue.wake(now + 4s + WorkQueue::kElsewhereFirst), ElementsAre(1));
  EXPECT_THAT(queue.demand(1).failed_on, IsEmpty());
  EXPECT_EQ(queue.why_elsewhere(1), "");
  EXPECT_EQ(next({queue.next({})->lane}), 0u) << "they are of one lane again";
}

TEST_F(WorkQueueTest, WhatWasTakenAndNotLeasedIsWhereItWas) {
  sweep(1);
  trial(1, {{1, 0, 0}});
  trial(2, {{1, 1, 0}});
  queue.take(1);
  EXPECT_EQ(next(), 2u);
  queue.give_back(1, now);
  EXPECT_EQ(next(), 1u);
  queue.take(1);
  under_way(1, {{1, 0, 0}});
  queue.give_back(1, now);  // too late
  EXPECT_EQ(next(), 2u);
}

TEST_F(WorkQueueTest, OneLongRunIsEnoughForASweepNotToBeQuick) {
  sweep(1);
  trial(1, {{1, 0, 0}});
  EXPECT_FALSE(queue.next({})->typical);
  for (int i = 0; i < 10; ++i) queue.ran({1}, 2ms);
  EXPECT_EQ(queue.next({})->typical, 2ms);
  queue.ran({1}, 60s);
  EXPECT_EQ(queue.next({})->typical, 60s);
}

TEST_F(WorkQueueTest, ARunThatEndedWithItsWorkerMakesNoSweepQuick) {
  sweep(1);
  trial(1, {{1, 0, 0}});
  queue.outlived({1}, 300ms);
  EXPECT_FALSE(queue.next({})->typical) << "it might have taken an hour";
  queue.outlived({1}, 60s);
  EXPECT_EQ(queue.next({})->typical, 60s);
  queue.outlived({1}, 20s);
  EXPECT_EQ(queue.next({})->typical, 60s) << "that is known to be longer";
}

TEST_F(WorkQueueTest, ItsLoadIsToldByPriorityWithoutWhatMayNotRun) {
  sweep(1);
  sweep(2, 5);
  sweep(3, 5, /*active=*/false);
  trial(1, {{1, 0, 0}});
  trial(2, {{1, 0, 1}, {2, 0, 0}});
  trial(3, {{3, 0, 0}});
  trial(4, {{2, 1, 0}}, 1, now + 1min);
  under_way(5, {{1, 1, 0}});
  WorkQueue::Load load = queue.load();
  EXPECT_EQ(load.under_way, 1U);
  EXPECT_EQ(load.ready, 3U);
  EXPECT_THAT(load.by_priority, ElementsAre(testing::Pair(5, 1U), testing::Pair(0, 2U)));
  sweep(3, 7);
  sweep(2, 0);
  EXPECT_THAT(queue.load().by_priority, ElementsAre(testing::Pair(7, 1U), testing::Pair(0, 3U)));
  drain();
  load = queue.load();
  EXPECT_THAT(load.by_priority, IsEmpty());
  EXPECT_EQ(load.under_way, 4U);
  EXPECT_EQ(load.ready, 0U);
}

TEST_F(WorkQueueTest, TheLongestWaitIsOfTheSweepThatGotNothingForLongest) {
  EXPECT_EQ(queue.load().longest, std::nullopt);
  const Time begin = now;
  sweep(1);
  sweep(2);
  for (TrialId id = 1; id <= 3; ++id) trial(id, {{1, static_cast<std::uint32_t>(id), 0}});
  now += 1min;
  for (TrialId id = 11; id <= 13; ++id) trial(id, {{2, static_cast<std::uint32_t>(id), 0}});
  EXPECT_EQ(queue.load().longest, begin);
  now += 1min;
  queue.wake(now);
  queue.take(1);
  EXPECT_EQ(queue.load().longest, begin + 1min) << "sweep 2's turn";
  queue.take(11);
  EXPECT_EQ(queue.load().longest, now);
  sweep(1, 0, /*active=*/false);
  sweep(2, 0, /*active=*/false);
  EXPECT_EQ(queue.load().longest, std::nullopt) << "what is paused does not wait";
  now += 1h;
  queue.wake(now);
  sweep(1);
  EXPECT_EQ(queue.load().longest, now);
}

/// Whatever happens in whatever order, it is as if it were filled anew.
TEST_F(WorkQueueTest, AThousandRandomChangesLeaveTheSameQueueAsTheirResult) {
  std::minstd_rand random{7};
  const auto any = [&](std::uint32_t count) {
    return std::uniform_int_distribution<std::uint32_t>{0, count - 1}(random);
  };
  std::map<storage::SweepId, storage::OpenSweep> sweeps;
  std::map<TrialId, OpenTrial> trials;
  for (int i = 0; i < 5000; ++i) {
    const TrialId id = 1 + any(40);
    switch (any(8)) {
      case 0:
        sweeps[1 + id % 5] = {.id = 1 + id % 5,
                              .active = any(3) > 0,
                              .priority = static_cast<int>(any(3)),
                              .owner = any(2) == 0 ? "alice" : "bob",
                              .weight = 1.0 + any(3)};
        if (any(3) == 0) sweeps[1 + id % 5].max_running = 1 + any(4);
        queue.put_sweep(sweeps[1 + id % 5]);
        break;
      case 1:
        queue.erase(id);
        trials.erase(id);
        break;
      case 2:
        if (const auto found = queue.next({})) {
          queue.take(found->trial);
          queue.give_back(found->trial, now);
        }
        break;
      case 3:
        queue.refuse(id, any(3), now, now + std::chrono::seconds{any(20)}, "no");
        break;
      case 4:
        now += 1s;
        queue.wake(now);
        break;
      default: {
        OpenTrial open{.id = id, .shape = 1 + any(2), .under_way = any(3) == 0};
        if (any(4) == 0) open.not_before = now + std::chrono::seconds{any(5)};
        for (storage::SweepId claim = 1; claim <= 5; ++claim)
          if (any(3) == 0) open.claims.push_back({claim, any(9), any(3)});
        queue.put(open, now);
        trials[id] = open;
      }
    }
  }
  WorkQueue anew;
  anew.put_shape(1, {});
  anew.put_shape(2, {.gpus = 4});
  for (const auto& [id, stored] : sweeps) anew.put_sweep(stored);
  for (const auto& [id, stored] : trials) anew.put(stored, now);
  EXPECT_EQ(queue.dump(), anew.dump());
  now += 1h;
  queue.wake(now);
  anew.wake(now);
  for (auto& [id, stored] : sweeps) {
    stored.max_running.reset();
    queue.put_sweep(stored);
    anew.put_sweep(stored);
  }
  auto left = drain();
  std::vector<TrialId> expected;
  while (const auto found = anew.next({})) {
    anew.take(found->trial);
    expected.push_back(found->trial);
  }
  std::ranges::sort(left);
  std::ranges::sort(expected);
  EXPECT_EQ(left, expected);
}

}  // namespace
}  // namespace abl::scheduler
