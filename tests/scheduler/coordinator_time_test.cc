// SPDX-License-Identifier: Apache-2.0
// Workers whose time ends: a job of a batch system has a limit.
#include "tests/scheduler/fixtures.h"

namespace abl::scheduler {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class TimeTest : public CoordinatorTest {
 protected:
  /// Programs of other people: they cannot go on elsewhere. The rows of different sweeps are different.
  static sweeps::SweepSpec commands(const std::string& name, int rows) {
    sweeps::SweepSpec spec = sweep_of(name, rows, 1, "");
    spec.command = sweeps::Command{.argv = {"train", name}};
    for (sweeps::Row& row : spec.rows) row.config_hash = sha256_hex(name + row.id);
    return spec;
  }
  FakeWorker connect_for(std::chrono::seconds left, const std::string& name = "pilot", int slots = 1,
                         std::chrono::seconds in_all = {}) {
    ablate::v1::Hello hello = hello_of({.name = name, .slots = slots, .allows_commands = true});
    hello.set_time_left_ms(static_cast<std::uint64_t>(Milliseconds{left}.count()));
    hello.set_time_in_all_ms(static_cast<std::uint64_t>(Milliseconds{in_all}.count()));
    FakeWorker worker;
    worker.session = coordinator->open_session(hello, worker.channel);
    settle();
    worker.look();
    return worker;
  }
  void end(FakeWorker& worker, std::uint32_t run, std::chrono::seconds took,
           ablate::v1::RunEnded::Status status = ablate::v1::RunEnded::STATUS_COMPLETED) {
    ablate::v1::RunBatch batch =
        ended(run, 1, status, status == ablate::v1::RunEnded::STATUS_STOPPED ? "its worker stops" : "");
    batch.mutable_ended()->set_took_ms(static_cast<std::uint64_t>(Milliseconds{took}.count()));
    say(worker, batch);
  }
  std::string waits(storage::TrialId id) { return trial(id).reason; }
};

TEST_F(TimeTest, AProgramGoesOnlyWhereThereIsTimeForAllOfItAndPeopleReadWhyItWaits) {
  submit(commands("long", 3));
  FakeWorker whole = connect();  // its time has no end, but it runs no programs
  FakeWorker pilot = connect_for(30min);
  ASSERT_THAT(pilot.take_assigned(), SizeIs(1)) << "nobody knows yet how long it takes";
  end(pilot, 1, 20min);
  EXPECT_THAT(pilot.take_assigned(), SizeIs(1)) << "20 minutes and a reserve do fit";
  clock.pass(10min);
  heartbeat(pilot, {2});
  end(pilot, 2, 20min);
  EXPECT_THAT(pilot.take_assigned(), IsEmpty()) << "20 minutes are left";
  pass(1s);
  EXPECT_THAT(waits(3),
              HasSubstr("its runs take about 20 min at a stretch, longer than worker pilot has left"));
  FakeWorker next = connect_for(30min, "next");
  EXPECT_THAT(next.take_assigned(), SizeIs(1));
}

TEST_F(TimeTest, AWorkerThatConnectsAgainAtItsEndBeginsNothingMore) {
  submit(commands("study", 2));
  FakeWorker again = connect_for(30s, "pilot", 1, 8h);
  EXPECT_THAT(again.take_assigned(), IsEmpty()) << "of eight hours 30 s are left";
  pass(1s);
  EXPECT_EQ(trial(1).state, storage::TrialState::kQueued);
  disconnect(again);
  FakeWorker fresh = connect_for(30s, "short", 1, 30s);
  EXPECT_THAT(fresh.take_assigned(), SizeIs(1)) << "one that never had more may try";
}

TEST_F(TimeTest, AProgramOfAQuickerSweepGoesPastOneThatHasTooLittleTime) {
  submit(commands("long", 2), 9);
  FakeWorker first = connect_for(10h, "first");
  ASSERT_THAT(first.take_assigned(), SizeIs(1));
  end(first, 1, 5h);
  disconnect(first);
  submit(commands("short", 2), 1);
  FakeWorker pilot = connect_for(30min);
  const auto assigned = pilot.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1));
  EXPECT_EQ(assigned[0].argv(1), "short") << "of which nobody knows: it is worth a try";
  end(pilot, assigned[0].run(), 1min);
  ASSERT_THAT(pilot.take_assigned(), SizeIs(1)) << "the second short one";
}

TEST_F(TimeTest, AProgramThatWasCutOffIsNotTriedAgainWhereItCannotFinish) {
  submit(commands("long", 1));
  FakeWorker pilot = connect_for(50s, "one");
  ASSERT_THAT(pilot.take_assigned(), SizeIs(1));
  clock.pass(10s);
  end(pilot, 1, 50s, ablate::v1::RunEnded::STATUS_STOPPED);
  disconnect(pilot);
  FakeWorker second = connect_for(50s, "two");
  EXPECT_THAT(second.take_assigned(), IsEmpty());
  FakeWorker third = connect_for(60s, "three");
  EXPECT_THAT(third.take_assigned(), SizeIs(1)) << "it takes 50 s at least, as far as is known";
}

TEST_F(TimeTest, ATrialThatGoesOnFromItsCheckpointsGoesWhereAStartIsWorthIt) {
  submit(sweep_of("s", 3, 1));
  FakeWorker pilot = connect_for(1h);
  ASSERT_THAT(pilot.take_assigned(), SizeIs(1));
  clock.pass(50min);
  heartbeat(pilot, {1});
  end(pilot, 1, 50min);
  EXPECT_THAT(pilot.take_assigned(), SizeIs(1)) << "ten minutes are left: another worker goes on";
  clock.pass(9min);
  heartbeat(pilot, {2});
  end(pilot, 2, 50min);
  EXPECT_THAT(pilot.take_assigned(), IsEmpty()) << "one minute is not worth it";
  pass(1s);
  EXPECT_THAT(waits(3), HasSubstr("worker pilot ends soon"));
  FakeWorker brief = connect_for(20s, "brief");
  EXPECT_THAT(brief.take_assigned(), SizeIs(1)) << "where all workers have little time, it is used";
}

}  // namespace
}  // namespace abl::scheduler
