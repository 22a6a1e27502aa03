// SPDX-License-Identifier: Apache-2.0
// Trials that take the weights of others.
#include "storage/chain_store.h"
#include "tests/scheduler/fixtures.h"

namespace abl::scheduler {
namespace {

using storage::TrialState;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// Row b takes the best weights of row a.
sweeps::SweepSpec chain_of(const std::string& name, int seeds = 1) {
  sweeps::SweepSpec spec = sweep_of(name, 2, seeds);
  spec.rows[1].sources = {{.role = sweeps::RowSource::Role::kStart, .row = 0}};
  return spec;
}

ablate::v1::RunBatch best_checkpoint(std::uint32_t run, std::uint64_t seq, const std::string& sha256) {
  ablate::v1::RunBatch batch = batch_of(run, seq);
  auto& checkpoint = *batch.add_checkpoints();
  checkpoint.set_step(100);
  checkpoint.set_host("w-host");
  checkpoint.set_path("/runs/1/1/checkpoint-100.safetensors");
  checkpoint.set_best("/runs/1/1/best.safetensors");
  checkpoint.set_sha256(sha256);
  return batch;
}

class ChainsTest : public CoordinatorTest {
 protected:
  /// Trains what was assigned first, with a best checkpoint.
  void complete_first(FakeWorker& worker) {
    say(worker, started(1, 1));
    say(worker, best_checkpoint(1, 2, std::string(64, 'a')));
    say(worker, ended(1, 3));
  }
};

TEST_F(ChainsTest, ATrialIsAssignedAfterItsSourceWithTheFileThatThatHasWritten) {
  submit(chain_of("s"));
  FakeWorker worker = connect({.slots = 2});
  ASSERT_THAT(worker.take_assigned(), SizeIs(1)) << "though a slot is free";
  EXPECT_EQ(trial(2).reason, "waits for row a, seed 0 (leased)");
  complete_first(worker);
  const auto assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1));
  EXPECT_EQ(assigned[0].trial(), 2u);
  EXPECT_EQ(assigned[0].weights_size(), 0) << "no worker needs a name for them";
  ASSERT_EQ(assigned[0].sources_size(), 1);
  EXPECT_EQ(assigned[0].sources(0).path(), "/runs/1/1/best.safetensors");
  EXPECT_EQ(assigned[0].sources(0).sha256(), std::string(64, 'a'));
  EXPECT_EQ(assigned[0].sources(0).what(), "row a, seed 0");
  EXPECT_THAT(assigned[0].config_json(), HasSubstr(assigned[0].sources(0).name()));
  const auto given = read([](storage::Database& db) { return storage::ChainStore{db}.given(2); });
  ASSERT_THAT(given, SizeIs(1));
  EXPECT_EQ(given[0].run, 1u);
}

TEST_F(ChainsTest, TheBestOfManyCheckpointsThatComeAtOnceIsKept) {
  submit(chain_of("s"));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  auto batch = best_checkpoint(1, 2, std::string(64, 'a'));
  for (std::uint32_t step = 101; step < 400; ++step) {
    auto& checkpoint = *batch.add_checkpoints();
    checkpoint.set_step(step);
    checkpoint.set_path("/runs/1/1/later.safetensors");
  }
  say(worker, batch);
  say(worker, ended(1, 3));
  const auto assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(2));
  EXPECT_EQ(assigned[1].sources(0).path(), "/runs/1/1/best.safetensors");
}

TEST_F(ChainsTest, ASchedulerThatBeginsAnewKnowsWhatWaits) {
  submit(chain_of("s"));
  FakeWorker worker = connect();
  stop();
  start();
  worker = connect({.runs = {1}});
  complete_first(worker);
  EXPECT_THAT(worker.take_assigned(), SizeIs(1));
}

TEST_F(ChainsTest, EachSeedFollowsItsOwn) {
  submit(chain_of("s", 2));
  FakeWorker worker = connect({.slots = 4});
  ASSERT_THAT(worker.take_assigned(), SizeIs(2));
  complete_first(worker);
  const auto assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1));
  EXPECT_EQ(assigned[0].seed(), 0);
}

TEST_F(ChainsTest, AFailedSourceHoldsWhatWaitsForIt) {
  submit(chain_of("s"));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  say(worker, ended(1, 2, ablate::v1::RunEnded::STATUS_FAILED, "boom", false));
  EXPECT_EQ(trial(2).state, TrialState::kHeld);
  EXPECT_THAT(trial(2).reason, HasSubstr("row a, seed 0, whose weights it takes, failed: boom"));
  answer_of([&](auto answer) { retry_sweep(*coordinator, "s", "", {}, answer); });
  settle();
  EXPECT_EQ(trial(2).state, TrialState::kQueued);
  worker.look();
  EXPECT_THAT(worker.take_assigned(), SizeIs(2)) << "the source, twice";
}

TEST_F(ChainsTest, AWorkerThatCannotReadTheFileLeavesItToAnother) {
  submit(chain_of("s"));
  FakeWorker worker = connect();
  complete_first(worker);
  ASSERT_THAT(worker.take_assigned(), SizeIs(2));
  refuse(worker, 2, "the checkpoint of row a, seed 0, whose weights it takes, is gone: /x", false);
  EXPECT_EQ(trial(2).state, TrialState::kQueued);
  EXPECT_THAT(trial(2).reason, AllOf(HasSubstr("worker w refused it"), HasSubstr("is gone")));
  FakeWorker other = connect({.name = "v"});
  EXPECT_THAT(other.take_assigned(), SizeIs(1));
}

TEST_F(ChainsTest, TheWorkerWhereTheFileLiesIsPreferred) {
  submit(chain_of("s"));
  FakeWorker worker = connect({.slots = 1});
  FakeWorker other = connect({.name = "v", .slots = 4});
  FakeWorker& first = worker.take_assigned().empty() ? other : worker;
  (void)first;
  const auto holder = run(1).worker;
  FakeWorker& of_first = holder == "w" ? worker : other;
  say(of_first, started(1, 1));
  auto batch = best_checkpoint(1, 2, std::string(64, 'a'));
  batch.mutable_checkpoints(0)->set_host(holder + "-host");
  say(of_first, batch);
  say(of_first, ended(1, 3));
  EXPECT_EQ(run(2).worker, holder);
}

TEST_F(ChainsTest, AWorkerOfAnOlderReleaseGetsNoneAndItIsSaid) {
  submit(chain_of("s"));
  FakeWorker worker = connect({.takes_sources = false});
  complete_first(worker);
  EXPECT_THAT(worker.take_assigned(), SizeIs(1));
  pass(1s);
  EXPECT_EQ(trial(2).reason, "worker w is of a release that takes no weights of other trials");
}

TEST_F(ChainsTest, ARunWithOtherWeightsThanItWasGivenIsStoppedBeforeItHasSaidANumber) {
  submit(chain_of("s"));
  FakeWorker worker = connect();
  complete_first(worker);
  const auto assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(2));
  say(worker, started_from(2, 1, assigned[1].sources(0).name(), std::string(64, 'b')));
  EXPECT_THAT(worker.take_said(), testing::Contains("fenced 2"));
  EXPECT_THAT(run(2).reason, HasSubstr("run 1 wrote aaaa"));
}

TEST_F(ChainsTest, ASourceThatSaidNoBestCheckpointHoldsTheTrial) {
  submit(chain_of("s"));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  say(worker, ended(1, 2));
  EXPECT_THAT(worker.take_assigned(), SizeIs(1));
  EXPECT_EQ(trial(2).state, TrialState::kHeld);
  EXPECT_THAT(trial(2).reason, HasSubstr("left no checkpoint of its best evaluation"));
  answer_of([&](auto answer) { rerun_rows(*coordinator, "s", {"a"}, answer); });
  settle();
  EXPECT_EQ(trial(2).state, TrialState::kQueued);
}

TEST_F(ChainsTest, EqualChainsOfTwoSweepsAreTrainedOnce) {
  submit(chain_of("s"));
  const Submission second = submit(chain_of("t"));
  EXPECT_EQ(second.new_trials, 0u);
  EXPECT_EQ(second.shared_trials, 2u);
}

}  // namespace
}  // namespace abl::scheduler
