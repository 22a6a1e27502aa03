// SPDX-License-Identifier: Apache-2.0
// What the coordinator counts of its work.
#include "scheduler/figures.h"

#include "tests/scheduler/fixtures.h"

namespace abl::scheduler {
namespace {

using storage::RunState;

class FiguresTest : public CoordinatorTest {
 protected:
  const Figures& figures() const { return coordinator->figures(); }
  std::uint64_t ended(RunState state) const {
    return figures().ended.at(static_cast<std::size_t>(state)).value();
  }
  Figures::Standing standing() {
    coordinator->tick();
    settle();
    return *figures().standing.lock();
  }
};

TEST_F(FiguresTest, WhatRunsSayAndHowTheyEndIsCounted) {
  submit(sweep_of("s", 3, 1));
  FakeWorker worker = connect({.slots = 3});
  EXPECT_EQ(figures().leases.value(), 3U);
  say(worker, started(1, 1));
  say(worker, measured(1, 2, 99));
  say(worker, scheduler::ended(1, 3));
  say(worker, started(2, 1));
  say(worker, scheduler::ended(2, 2, ablate::v1::RunEnded::STATUS_FAILED, "no", /*retryable=*/false));
  EXPECT_EQ(figures().batches.value(), 5U);
  EXPECT_EQ(figures().points.value(), 1U);
  EXPECT_GT(figures().batch_bytes.value(), 0U);
  EXPECT_EQ(ended(RunState::kCompleted), 1U);
  EXPECT_EQ(ended(RunState::kFailed), 1U);
  EXPECT_EQ(figures().failed.at(static_cast<std::size_t>(protocol::FailureClass::kTrial)).value(), 1U);
  pass(20s);
  EXPECT_EQ(figures().expired.value(), 1U);
  EXPECT_EQ(ended(RunState::kLost), 1U);
}

TEST_F(FiguresTest, HowThingsStandIsNotedAtATick) {
  submit(sweep_of("s", 3, 1));
  Figures::Standing now = standing();
  EXPECT_EQ(now.queued, 3U);
  EXPECT_EQ(now.queue.ready, 3U);
  EXPECT_EQ(now.connected, 0U);
  ASSERT_TRUE(now.longest_wait);
  pass(5s);
  EXPECT_GE(*standing().longest_wait, 5s);
  FakeWorker worker = connect({.slots = 2});
  now = standing();
  EXPECT_EQ(now.queued, 1U);
  EXPECT_EQ(now.queue.under_way, 2U);
  EXPECT_EQ(now.connected, 1U);
  EXPECT_EQ(now.busy, 2U);
  EXPECT_EQ(now.free, 0U);
  EXPECT_LT(*now.longest_wait, 5s) << "the sweep has just got slots";
  disconnect(worker);
  EXPECT_EQ(standing().connected, 0U);
  EXPECT_FALSE(coordinator->has_lost_queue());
}

}  // namespace
}  // namespace abl::scheduler
