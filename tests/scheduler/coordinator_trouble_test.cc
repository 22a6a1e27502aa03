// SPDX-License-Identifier: Apache-2.0
// Workers that are in trouble themselves: their trials go elsewhere, or wait, and pay nothing for it.
#include "storage/worker_store.h"
#include "tests/scheduler/fixtures.h"

namespace abl::scheduler {
namespace {

using ablate::v1::RunEnded;
using storage::RunState;
using storage::TrialState;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class CoordinatorTroubleTest : public CoordinatorTest {
 protected:
  static constexpr const char* kFull = "cannot write /home/spool: No space left on device";

  void say_trouble(FakeWorker& worker, const std::string& trouble,
                   const std::map<std::string, std::string>& gone_data = {}) {
    ablate::v1::WorkerMessage message;
    message.mutable_heartbeat()->set_trouble(trouble);
    for (const auto& [name, why] : gone_data) (*message.mutable_heartbeat()->mutable_gone_data())[name] = why;
    coordinator->receive(worker.session, message);
    settle();
    worker.look();
  }
  /// The end of a run that its worker could not run.
  static ablate::v1::RunBatch lost(std::uint32_t run, std::uint64_t seq) {
    auto batch = ended(run, seq, RunEnded::STATUS_LOST, std::string{"worker unhealthy: "} + kFull);
    batch.mutable_ended()->set_worker_trouble(true);
    return batch;
  }
  std::string stored_trouble() {
    return read([](storage::Database& db) { return storage::WorkerStore{db}.list().at(0).trouble; });
  }
};

TEST_F(CoordinatorTroubleTest, AWorkerInTroubleGetsNothingUntilItIsWell) {
  FakeWorker worker = connect();
  say_trouble(worker, kFull);
  submit(sweep_of("s", 1, 1));
  EXPECT_THAT(worker.take_assigned(), IsEmpty());
  EXPECT_EQ(trial(1).reason, std::string{"worker w is unhealthy: "} + kFull);
  EXPECT_EQ(stored_trouble(), kFull);
  say_trouble(worker, "");
  EXPECT_THAT(worker.take_assigned(), SizeIs(1));
  EXPECT_EQ(stored_trouble(), "");
}

TEST_F(CoordinatorTroubleTest, AWorkerThatSaysHelloInTroubleGetsNothing) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker;
  auto hello = hello_of({});
  hello.set_trouble(kFull);
  worker.session = coordinator->open_session(hello, worker.channel);
  settle();
  EXPECT_THAT(worker.take_assigned(), IsEmpty());
  EXPECT_EQ(stored_trouble(), kFull);
}

TEST_F(CoordinatorTroubleTest, ARunThatItLosesGoesElsewhereAndSpendsNoRetry) {
  submit(sweep_of("s", 1, 1));  // of no retries
  FakeWorker full = connect({.name = "full"});
  ASSERT_THAT(full.take_assigned(), SizeIs(1));
  for (std::uint32_t run = 1; run <= 3; ++run) {
    say_trouble(full, kFull);
    say(full, lost(run, 1));
    EXPECT_EQ(this->run(run).state, RunState::kLost);
    ASSERT_EQ(trial(1).state, TrialState::kQueued) << "after " << run << " attempts that nobody ran";
    EXPECT_EQ(trial(1).failures, 0);
    say_trouble(full, "");
    pass(8s);  // it may have to back off
    ASSERT_THAT(full.take_assigned(), SizeIs(1));
  }
  say_trouble(full, kFull);
  say(full, lost(4, 1));
  FakeWorker other = connect({.name = "other"});
  pass(10s);
  EXPECT_THAT(other.take_assigned(), SizeIs(1));
}

TEST_F(CoordinatorTroubleTest, ATrialThatLeavesWorkerAfterWorkerInTroubleIsHeldWithThatReason) {
  submit(sweep_of("s", 1, 1));
  for (std::uint32_t run = 1; run <= 5; ++run) {
    ASSERT_EQ(trial(1).state, TrialState::kQueued) << "after " << run - 1 << " workers";
    FakeWorker worker = connect({.name = "w" + std::to_string(run)});
    pass(10s);  // it may have to back off
    ASSERT_THAT(worker.take_assigned(), SizeIs(1));
    say_trouble(worker, kFull);
    say(worker, lost(run, 1));
  }
  EXPECT_EQ(trial(1).state, TrialState::kHeld);
  EXPECT_THAT(trial(1).reason, AllOf(HasSubstr("5 attempts in a row left their worker unhealthy"),
                                     HasSubstr("ablate retry <sweep> --held"), HasSubstr(kFull)));
}

TEST_F(CoordinatorTroubleTest, ATrialThatGetsFurtherEachTimeIsNotHeld) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  for (std::uint32_t run = 1; run <= 7; ++run) {
    pass(10s);
    ASSERT_THAT(worker.take_assigned(), SizeIs(1));
    say(worker, started(run, 1));
    say(worker, measured(run, 2, 0.5, run * 10));
    say_trouble(worker, kFull);
    say(worker, lost(run, 3));
    ASSERT_EQ(trial(1).state, TrialState::kQueued) << "after " << run << " attempts";
    say_trouble(worker, "");
  }
}

TEST_F(CoordinatorTroubleTest, DataThatAreGoneKeepOnlyTheTrialsThatNeedThem) {
  FakeWorker worker = connect({.slots = 2, .data = {"shapes", "photos"}});
  say_trouble(worker, "", {{"photos", "its data 'photos' are gone: /photos is empty"}});
  submit(sweep_of("p", 1, 1, "photos"));
  EXPECT_THAT(worker.take_assigned(), IsEmpty());
  EXPECT_EQ(trial(1).reason, "worker w: its data 'photos' are gone: /photos is empty");
  EXPECT_EQ(stored_trouble(), "its data 'photos' are gone: /photos is empty");
  say_trouble(worker, "");
  EXPECT_THAT(worker.take_assigned(), SizeIs(1));
}

TEST_F(CoordinatorTroubleTest, WeightsThatAreNotTheWantedOnesKeepOnlyTheTrialsThatWantThose) {
  const std::string how = "weights 'regnet' not usable: /regnet has the SHA-256 aa; expected bb";
  submit(tuning_of("wanting", 1, "regnet", "bb"));  // of no retries
  FakeWorker worker = connect({.weights = {"regnet"}});
  EXPECT_EQ(worker.take_assigned().at(0).weights_sha256().at("regnet"), "bb");
  ablate::v1::WorkerMessage message;
  auto& wrong = *message.mutable_heartbeat()->add_wrong_weights();
  wrong.set_name("regnet"), wrong.set_sha256("bb"), wrong.set_reason(how);
  coordinator->receive(worker.session, message);
  say(worker, lost(1, 1));
  EXPECT_EQ(run(1).state, RunState::kLost);
  EXPECT_EQ(trial(1).state, TrialState::kQueued);
  EXPECT_EQ(trial(1).failures, 0);
  EXPECT_EQ(stored_trouble(), how);
  pass(10s);
  EXPECT_EQ(trial(1).reason, "worker w: " + how);
  sweeps::SweepSpec other = tuning_of("other", 1, "regnet", "aa");
  other.rows[0].config = R"({"row":"that wants aa"})";
  submit(other);
  EXPECT_THAT(worker.take_assigned(), SizeIs(1)) << "of the trial that wants the file that is here";
  FakeWorker right = connect({.name = "right", .weights = {"regnet"}});
  EXPECT_THAT(right.take_assigned(), SizeIs(1));
}

TEST_F(CoordinatorTroubleTest, AnAssignmentSaysWhichWeightsTheResultsAreOfAndAWorkerOfOthersIsShown) {
  submit(tuning_of("s", 2, "regnet"));
  FakeWorker worker = connect({.weights = {"regnet"}});
  EXPECT_TRUE(worker.take_assigned().at(0).weights_sha256().empty()) << "the first one says it";
  say(worker, started_from(1, 1, "regnet", "aa"));
  say(worker, ended(1, 2));
  EXPECT_EQ(worker.take_assigned().at(0).weights_sha256().at("regnet"), "aa");
  say(worker, started_from(2, 1, "regnet", "bb"));
  say_trouble(worker, "");
  EXPECT_EQ(stored_trouble(), run(2).reason);
  EXPECT_THAT(stored_trouble(), HasSubstr("have the SHA-256 bb, this store's results are of aa"));
}

TEST_F(CoordinatorTroubleTest, AWorkerThatHadOtherWeightsGetsTrialsWhenItHasTheFile) {
  submit(tuning_of("s", 2, "regnet"));
  FakeWorker worker = connect({.weights = {"regnet"}});
  say(worker, started_from(1, 1, "regnet", "aa"));
  say(worker, ended(1, 2));
  say(worker, started_from(2, 1, "regnet", "bb"));
  worker.take_assigned();
  say_trouble(worker, "");
  EXPECT_THAT(worker.take_assigned(), IsEmpty()) << "it has not looked at the file";
  ablate::v1::WorkerMessage message;
  auto& wrong = *message.mutable_heartbeat()->add_wrong_weights();
  wrong.set_name("regnet"), wrong.set_sha256("aa"), wrong.set_reason("expected aa");
  coordinator->receive(worker.session, message);
  settle();
  worker.look();
  EXPECT_THAT(worker.take_assigned(), IsEmpty());
  EXPECT_EQ(stored_trouble(), "expected aa");
  say_trouble(worker, "");
  EXPECT_THAT(worker.take_assigned(), SizeIs(1));
  EXPECT_EQ(stored_trouble(), "");
}

TEST_F(CoordinatorTroubleTest, AnEndOfUnknownStatusIsAFailureThatSaysSo) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  say(worker, ended(1, 2, static_cast<RunEnded::Status>(77), "melted"));
  EXPECT_EQ(run(1).state, RunState::kFailed);
  EXPECT_EQ(run(1).reason, "unknown end of a run: status 77, melted");
  EXPECT_FALSE(worker.channel->closed()) << "nothing would be better when it came again";
}

TEST_F(CoordinatorTroubleTest, StoppedThoughNobodyAskedIsAFailure) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  auto stopped = ended(1, 2, RunEnded::STATUS_STOPPED, "no more wishes");
  stopped.mutable_ended()->clear_asked();
  say(worker, stopped);
  EXPECT_EQ(run(1).state, RunState::kFailed);
  EXPECT_EQ(trial(1).state, TrialState::kFailed);
  EXPECT_THAT(trial(1).reason, HasSubstr("without being asked to stop: no more wishes"));
}

TEST_F(CoordinatorTroubleTest, StoppedByThisSchedulersOrderIsNoFailureWhateverTheWorkerSays) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  answer_of([&](auto answer) { pause_sweep(*coordinator, "s", /*stop_running=*/true, answer); });
  settle();
  auto stopped = ended(1, 2, RunEnded::STATUS_STOPPED);
  stopped.mutable_ended()->clear_asked();
  say(worker, stopped);
  EXPECT_EQ(run(1).state, RunState::kStopped);
  EXPECT_EQ(trial(1).state, TrialState::kQueued);
}

}  // namespace
}  // namespace abl::scheduler
