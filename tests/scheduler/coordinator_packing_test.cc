// SPDX-License-Identifier: Apache-2.0
// Trials that share a slot's GPU.
#include "storage/measured_store.h"
#include "tests/scheduler/fixtures.h"

namespace abl::scheduler {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint64_t kBytesOfGiB = 1 << 30;

class CoordinatorPackingTest : public CoordinatorTest {
 protected:
  void submit_packed(int seeds, int rows = 1) {
    sweeps::SweepSpec spec = sweep_of("s", rows, seeds);
    spec.pack = true;
    submit(spec);
  }
  FakeWorker worker_with(std::uint64_t memory, int slots = 1) {
    return connect({.slots = slots, .slot_memory = memory});
  }
  /// From its start to its end in so many seconds, with 100 steps and that memory.
  void begin(FakeWorker& worker, std::uint32_t run) { say(worker, started(run, 1)); }
  void finish(FakeWorker& worker, std::uint32_t run, double memory, std::chrono::seconds took) {
    ablate::v1::RunBatch batch = batch_of(run, 2);
    ablate::v1::Series& series = *batch.add_series();
    series.set_name("memory_bytes");
    for (const int step : {1, 101}) {
      series.add_steps(static_cast<std::uint32_t>(step));
      series.add_values(memory);
      series.add_times_ms(step == 1 ? 1 : 1 + std::chrono::milliseconds{took}.count());
    }
    say(worker, batch);
    ablate::v1::RunBatch end = ended(run, 3);
    end.mutable_ended()->set_took_ms(static_cast<std::uint64_t>(std::chrono::milliseconds{took}.count()));
    say(worker, end);
  }
  storage::MeasuredStore::Packing known() {
    return read([](storage::Database& db) {
      return storage::MeasuredStore{db}.packing(storage::TrialStore{db}.get(1).pack, 0);
    });
  }
};

TEST_F(CoordinatorPackingTest, WhatNeedsASlotForItselfGetsItAlsoWhereOthersShareThemAll) {
  submit_packed(8);
  FakeWorker worker = worker_with(10 * kBytesOfGiB);
  worker.take_assigned();
  begin(worker, 1);
  finish(worker, 1, 2.5 * kBytesOfGiB, 10s);
  ASSERT_THAT(worker.take_assigned(), SizeIs(3));
  sweeps::SweepSpec late = sweep_of("late", 3, 1);
  late.rows.erase(late.rows.begin(), late.rows.begin() + 2);  // another model: nobody has measured it
  late.pack = true;
  submit(late);
  for (const std::uint32_t run : {2, 3}) {
    begin(worker, run);
    finish(worker, run, 2.5 * kBytesOfGiB, 10s);
    EXPECT_THAT(worker.take_assigned(), IsEmpty()) << "nothing is put beside the others any more";
  }
  begin(worker, 4);
  finish(worker, 4, 2.5 * kBytesOfGiB, 10s);
  const auto assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1));
  EXPECT_EQ(run(assigned[0].run()).trial, 9u) << "the late one";
}

TEST_F(CoordinatorPackingTest, TheFirstRunMeasuresAloneThenAsManyShareASlotAsFit) {
  submit_packed(8);
  FakeWorker worker = worker_with(10 * kBytesOfGiB);
  auto assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1)) << "nobody knows what it takes";
  EXPECT_FALSE(assigned[0].packed());
  begin(worker, 1);
  finish(worker, 1, 2.5 * kBytesOfGiB, 10s);
  EXPECT_EQ(known().memory_bytes, 2.5 * kBytesOfGiB);
  assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(3)) << "three take 7.5 of 9 GiB";
  EXPECT_FALSE(assigned[0].packed());
  EXPECT_TRUE(assigned[1].packed());
  EXPECT_TRUE(assigned[2].packed());
  EXPECT_THAT(assigned[2].slots(), ElementsAre(0));
  EXPECT_EQ(run(1).packed_with, 0u);
  for (const std::uint32_t shared : {2, 3, 4}) EXPECT_EQ(run(shared).packed_with, 2u);
  begin(worker, 2);
  finish(worker, 2, 2.5 * kBytesOfGiB, 10s);
  EXPECT_THAT(worker.take_assigned(), SizeIs(1)) << "one takes its place";
}

TEST_F(CoordinatorPackingTest, NoMoreThanFourShareASlotAndFreeSlotsGoFirst) {
  submit_packed(12);
  FakeWorker worker = worker_with(100 * kBytesOfGiB, 2);
  worker.take_assigned();
  begin(worker, 1);
  finish(worker, 1, kBytesOfGiB, 10s);
  auto assigned = worker.take_assigned();
  begin(worker, 2);
  finish(worker, 2, kBytesOfGiB, 10s);
  for (const auto& more : worker.take_assigned()) assigned.push_back(more);
  ASSERT_THAT(assigned, SizeIs(8)) << "four in each slot";
  EXPECT_EQ(std::ranges::count_if(assigned, [](const auto& assign) { return assign.packed(); }), 6);
}

TEST_F(CoordinatorPackingTest, TrialsOfAWorkerThatDoesNotSayItsMemoryAndOfASweepThatDoesNotPackRunAlone) {
  submit_packed(4);
  FakeWorker worker = connect();
  worker.take_assigned();
  begin(worker, 1);
  finish(worker, 1, kBytesOfGiB, 10s);
  EXPECT_THAT(worker.take_assigned(), SizeIs(1));
  EXPECT_EQ(run(2).packed_with, 0u);
}

TEST_F(CoordinatorPackingTest, WhereRunsTogetherAreSlowerThanOneTheRowPacksNoMoreAlsoAfterARestart) {
  submit_packed(12);
  FakeWorker worker = worker_with(4 * kBytesOfGiB);
  worker.take_assigned();
  begin(worker, 1);
  finish(worker, 1, kBytesOfGiB, 10s);  // 10 steps a second
  ASSERT_THAT(worker.take_assigned(), SizeIs(3));
  for (const std::uint32_t shared : {2, 3, 4}) begin(worker, shared);
  clock.pass(40s);
  finish(worker, 2, kBytesOfGiB, 40s);  // 2.5 steps a second, each of three
  EXPECT_THAT(known().stopped, AllOf(HasSubstr("3.0 runs at once"), HasSubstr("0.75 times")));
  EXPECT_THAT(worker.take_assigned(), SizeIs(0)) << "the others are there still";
  finish(worker, 3, kBytesOfGiB, 40s);
  finish(worker, 4, kBytesOfGiB, 40s);
  EXPECT_THAT(worker.take_assigned(), SizeIs(1)) << "for itself again";
  stop();
  start();
  worker = worker_with(4 * kBytesOfGiB);
  EXPECT_THAT(worker.take_assigned(), SizeIs(1));
}

TEST_F(CoordinatorPackingTest, OneThatRunsOutOfMemoryBesideOthersHasNotFailedAndRunsAloneNext) {
  submit_packed(4);
  FakeWorker worker = worker_with(4 * kBytesOfGiB);
  worker.take_assigned();
  begin(worker, 1);
  finish(worker, 1, kBytesOfGiB, 10s);
  ASSERT_THAT(worker.take_assigned(), SizeIs(3));
  begin(worker, 3);
  ablate::v1::RunBatch end = ended(3, 2, ablate::v1::RunEnded::STATUS_FAILED, "CUDA out of memory");
  end.mutable_ended()->set_failure(ablate::v1::FAILURE_CLASS_RESOURCES);
  say(worker, end);
  EXPECT_EQ(run(3).state, storage::RunState::kLost);
  EXPECT_THAT(run(3).reason, AllOf(HasSubstr("packed: "), HasSubstr("CUDA out of memory")));
  EXPECT_EQ(trial(3).state, storage::TrialState::kQueued);
  EXPECT_EQ(trial(3).failures, 0);
  EXPECT_THAT(worker.take_assigned(), SizeIs(0));
  begin(worker, 2);
  finish(worker, 2, kBytesOfGiB, 10s);
  EXPECT_THAT(worker.take_assigned(), SizeIs(0));
  begin(worker, 4);
  finish(worker, 4, kBytesOfGiB, 10s);
  const auto assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1));
  EXPECT_EQ(assigned[0].trial(), 3u);
  EXPECT_FALSE(assigned[0].packed());
}

TEST_F(CoordinatorPackingTest, OfARunBesideOthersTheMemoryCountsAndTheRateDoesNot) {
  submit_packed(4);
  FakeWorker worker = worker_with(4 * kBytesOfGiB);
  worker.take_assigned();
  begin(worker, 1);
  finish(worker, 1, kBytesOfGiB, 10s);
  begin(worker, 2);
  finish(worker, 2, 3.0 * kBytesOfGiB, 20s);
  EXPECT_EQ(known().memory_bytes, 3 * kBytesOfGiB);
  EXPECT_NEAR(known().steps_per_second, 10, 1e-6);
}

TEST_F(CoordinatorPackingTest, AWorkerThatComesBackKeepsTheRunsThatShareItsSlot) {
  submit_packed(6);
  FakeWorker worker = worker_with(4 * kBytesOfGiB);
  worker.take_assigned();
  begin(worker, 1);
  finish(worker, 1, kBytesOfGiB, 10s);
  ASSERT_THAT(worker.take_assigned(), SizeIs(3));
  for (const std::uint32_t shared : {2, 3, 4}) begin(worker, shared);
  disconnect(worker);
  ablate::v1::Hello hello = hello_of({.slot_memory = 4 * kBytesOfGiB});
  for (const std::uint32_t shared : {2, 3, 4}) hello.add_runs(shared);
  hello.mutable_slots(0)->set_run(2);
  hello.mutable_slots(0)->add_beside(3);
  hello.mutable_slots(0)->add_beside(4);
  worker = {};
  worker.session = coordinator->open_session(hello, worker.channel);
  settle();
  EXPECT_THAT(worker.take_assigned(), SizeIs(0)) << "the slot is taken";
  finish(worker, 2, kBytesOfGiB, 10s);
  finish(worker, 3, kBytesOfGiB, 10s);
  EXPECT_THAT(worker.take_assigned(), SizeIs(0)) << "still by one";
  finish(worker, 4, kBytesOfGiB, 10s);
  EXPECT_THAT(worker.take_assigned(), SizeIs(2)) << "the two that are left";
}

TEST_F(CoordinatorPackingTest, ASlotStaysTakenByThoseThatAreLeftOfThoseThatSharedIt) {
  submit_packed(6);
  FakeWorker worker = worker_with(4 * kBytesOfGiB);
  worker.take_assigned();
  begin(worker, 1);
  finish(worker, 1, kBytesOfGiB, 10s);
  for (const std::uint32_t shared : {2, 3, 4}) begin(worker, shared);
  disconnect(worker);
  ablate::v1::Hello hello = hello_of({.slot_memory = 4 * kBytesOfGiB});
  hello.add_runs(3);
  hello.mutable_slots(0)->set_run(2);  // of which it has nothing to say any more
  hello.mutable_slots(0)->add_beside(3);
  worker = {};
  worker.session = coordinator->open_session(hello, worker.channel);
  settle();
  EXPECT_EQ(run(2).state, storage::RunState::kLost);
  EXPECT_THAT(worker.take_assigned(), SizeIs(0));
  finish(worker, 3, kBytesOfGiB, 10s);
  EXPECT_THAT(worker.take_assigned(), SizeIs(3));
}

}  // namespace
}  // namespace abl::scheduler
