// SPDX-License-Identifier: Apache-2.0
// What workers say of runs: batches, refusals, ends and what follows from them.
#include "storage/point_limit.h"
#include "storage/probe_store.h"
#include "tests/scheduler/fixtures.h"

namespace abl::scheduler {
namespace {

using ablate::v1::RunEnded;
using storage::TrialState;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(CoordinatorTest, ARunIsAcknowledgedAndCompletesItsTrial) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  EXPECT_THAT(worker.take_said(), ElementsAre("welcome"));
  const auto assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1));
  EXPECT_EQ(assigned[0].data(), "shapes");
  EXPECT_EQ(assigned[0].attempt(), 1u);
  say(worker, started(1, 1));
  EXPECT_EQ(trial(1).state, TrialState::kRunning);
  say(worker, measured(1, 2, 81.5));
  say(worker, ended(1, 3));
  EXPECT_THAT(worker.take_said(), ElementsAre("ack 1 1", "ack 1 2", "ack 1 3"));
  EXPECT_EQ(trial(1).state, TrialState::kCompleted);
}

TEST_F(CoordinatorTest, ABatchThatComesTwiceIsStoredOnceAndAcknowledgedTwice) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  say(worker, measured(1, 2, 50));
  say(worker, measured(1, 2, 50));
  auto last = ended(1, 3);
  last.set_log("done\n");
  say(worker, last);
  say(worker, last);
  EXPECT_THAT(worker.take_said(),
              ElementsAre("welcome", "ack 1 1", "ack 1 2", "ack 1 2", "ack 1 3", "ack 1 3"));
  const auto [points, log] = read([](storage::Database& db) {
    const storage::MetricStore metrics{db};
    return std::pair{metrics.summaries(1).at(0).count, metrics.log(1, 0, 100)};
  });
  EXPECT_EQ(points, 1u);
  EXPECT_EQ(log, "done\n");
}

TEST_F(CoordinatorTest, WhatProbesFoundIsStoredAndAsWellAfterTheEnd) {
  auto text = sweep_of("s", 1, 1);
  text.probes = {protocol::read_probe("feature-norms")};
  submit(text);
  FakeWorker worker = connect();
  const auto assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1));
  EXPECT_THAT(assigned[0].probes(), ElementsAre(R"({"images":64,"name":"feature-norms"})"));
  say(worker, started(1, 1));
  auto batch = measured(1, 2, 81.5);
  auto& found = *batch.add_probes();
  found.set_name("feature-norms");
  found.set_step(2);
  found.set_found_json(R"({"probe":"feature-norms","values":{"last":1.5}})");
  auto& named_so = *batch.add_series();
  named_so.set_name("probe:feature-norms/last");
  named_so.add_steps(2), named_so.add_values(9), named_so.add_times_ms(1);
  auto& wrong = *batch.add_probes();
  wrong.set_name("other");
  wrong.set_found_json("{}");
  say(worker, batch);
  std::exception_ptr failed;
  coordinator->put_probes(1, {}, [&](std::exception_ptr error) { failed = error; });
  settle();
  EXPECT_TRUE(failed) << "the run is under way";
  say(worker, ended(1, 3));
  const auto stored = [&] {
    return read([](storage::Database& db) {
      return std::pair{storage::ProbeStore{db}.of(1), storage::MetricStore{db}.log(1, 0, 1000)};
    });
  };
  ASSERT_THAT(stored().first, SizeIs(1));
  EXPECT_EQ(stored().first[0].step, 2u);
  EXPECT_THAT(stored().second, HasSubstr("[scheduler] probe result not stored: \"probe\" must be"));
  EXPECT_EQ(trial(1).state, TrialState::kCompleted);

  coordinator->put_probes(
      1, {{.found = {.request = {.name = "feature-norms"}, .values = {{"last", 7}}}, .step = 9}},
      [&](std::exception_ptr error) { failed = error; });
  settle();
  EXPECT_FALSE(failed);
  EXPECT_EQ(stored().first[0].step, 9u);
  coordinator->put_probes(77, {}, [&](std::exception_ptr error) { failed = error; });
  settle();
  EXPECT_TRUE(failed) << "there is no such run";
}

TEST_F(CoordinatorTest, AMissingBatchEndsTheSessionSoThatTheWorkerSendsItAgain) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  say(worker, ended(1, 3));
  ASSERT_TRUE(worker.channel->closed());
  EXPECT_EQ(worker.channel->closed()->code(), Code::kFailedPrecondition);
  EXPECT_EQ(trial(1).state, TrialState::kRunning) << "nothing of batch 3 is stored";
}

TEST_F(CoordinatorTest, ATrialThatIsAloneOnWorkersThatDieIsHeldUntilSomebodyReleasesIt) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  for (int attempt = 1; attempt <= storage::TrialStore::kDeathsInARow; ++attempt) {
    const auto assigned = worker.take_assigned();
    ASSERT_THAT(assigned, SizeIs(1)) << attempt;
    disconnect(worker);  // killed, and started again with what is in its spool
    worker = connect({.instance = std::to_string(attempt), .runs = {assigned[0].run()}});
    say(worker, ended(assigned[0].run(), 1, RunEnded::STATUS_LOST, "its worker was killed"));
    for (int i = 0; i < 10; ++i) pass(1s), heartbeat(worker, {});  // the back-off
  }
  EXPECT_THAT(worker.take_assigned(), IsEmpty());
  EXPECT_EQ(trial(1).state, TrialState::kHeld);
  EXPECT_EQ(trial(1).failures, 0);
  EXPECT_THAT(trial(1).reason, AllOf(HasSubstr("5 attempts in a row"), HasSubstr("its worker was killed"),
                                     HasSubstr("ablate retry")));
  answer_of([&](auto answer) { retry_sweep(*coordinator, "s", "", {.ended = false}, answer); });
  settle();
  EXPECT_THAT(worker.take_assigned(), SizeIs(1));
}

TEST_F(CoordinatorTest, RunsThatWereLeasedAheadAreNoCompanyInADeathAndNotToBlame) {
  submit(sweep_of("s", 9, 1));
  FakeWorker worker = connect();
  ablate::v1::RunBatch quick = ended(1, 1);
  quick.mutable_ended()->set_took_ms(3);
  say(worker, quick);
  EXPECT_EQ(run(6).state, storage::RunState::kLeased);
  disconnect(worker);
  worker = connect({.instance = "second"});  // killed by run 2
  EXPECT_EQ(trial(2).deaths, 1);
  for (storage::TrialId waiting = 3; waiting <= 6; ++waiting) EXPECT_EQ(trial(waiting).deaths, 0) << waiting;
}

TEST_F(CoordinatorTest, WorkersThatAreKilledWithSeveralTrialsHoldNone) {
  submit(sweep_of("s", 2, 1));
  FakeWorker worker = connect({.slots = 2});
  for (int attempt = 1; attempt <= 2 * storage::TrialStore::kDeathsInARow; ++attempt) {
    disconnect(worker);
    worker = connect({.slots = 2, .instance = std::to_string(attempt)});  // without them
    clock.pass(storage::TrialStore::kLongestBackOff);
    coordinator->tick();
    settle();
    ASSERT_THAT(worker.take_assigned(), SizeIs(2)) << attempt;
  }
  for (storage::TrialId id : {1, 2}) {
    EXPECT_EQ(trial(id).failures, 0);
    EXPECT_EQ(trial(id).deaths, 0);
  }
}

TEST_F(CoordinatorTest, ARunThatIsNewerThanARestoredResultsFileEndsAlone) {
  submit(sweep_of("s", 2, 1));
  FakeWorker worker = connect({.slots = 2});
  say(worker, started(1, 1));
  say(worker, started(2, 1));
  // the file is restored: of run 1 it has batch 1, while the worker has dropped all up to 22 as acknowledged
  FakeWorker back = connect({.slots = 2, .runs = {1, 2}});
  back.take_said();
  say(back, measured(1, 23, 70));
  EXPECT_FALSE(back.channel->closed()) << "the other run goes on";
  EXPECT_THAT(back.take_said(), ElementsAre("fenced 1"));
  EXPECT_EQ(run(1).state, storage::RunState::kLost);
  EXPECT_THAT(run(1).reason, AllOf(HasSubstr("batches 2 to 22"), HasSubstr("older than the run")));
  EXPECT_EQ(trial(1).failures, 0);
  say(back, measured(2, 2, 80));
  EXPECT_THAT(back.take_said(), ElementsAre("ack 2 2"));
}

TEST_F(CoordinatorTest, ARunThatGoesOnFromOneThatARestoredFileLacksEndsAlone) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  auto batch = started(1, 1);
  batch.mutable_started()->set_resumed_from_run(77);
  batch.mutable_started()->set_resumed_from_step(10);
  say(worker, batch);
  EXPECT_FALSE(worker.channel->closed());
  EXPECT_THAT(worker.take_said(), ElementsAre("welcome", "fenced 1"));
  EXPECT_THAT(run(1).reason, HasSubstr("resumes run 77"));
  EXPECT_THAT(worker.take_assigned(), SizeIs(2)) << "the same trial again";
}

TEST_F(CoordinatorTest, ARunOfTheSameNumberFromACopyOfTheResultsFileIsAnotherRun) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  const auto assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1));
  EXPECT_FALSE(assigned[0].token().empty());
  // it has a run 1 too, which a newer copy of the file gave it: another trial's, perhaps
  auto foreign = measured(1, 1, 99);
  foreign.set_token("another");
  say(worker, foreign);
  EXPECT_THAT(worker.take_said(), ElementsAre("welcome", "fenced 1"));
  EXPECT_THAT(read([](storage::Database& db) { return storage::MetricStore{db}.summaries(1); }), IsEmpty());
  FakeWorker back = connect({.runs = {1}, .tokens = {{1, "another"}}});
  EXPECT_THAT(back.take_said(), ElementsAre("welcome", "fenced 1"));
  EXPECT_EQ(run(1).state, storage::RunState::kLost) << "the stored one is not there";
  ASSERT_THAT(back.take_assigned(), SizeIs(1));
  FakeWorker same = connect({.runs = {2}, .tokens = {{2, run(2).token}}});
  EXPECT_THAT(same.take_said(), ElementsAre("welcome"));
  EXPECT_EQ(run(2).state, storage::RunState::kLeased) << "and this one is";
}

TEST_F(CoordinatorTest, WelcomeNamesTheResultsFile) {
  const std::string id = read([](storage::Database& db) { return db.store_id(); });
  EXPECT_EQ(id.size(), 32u);
  FakeWorker worker;
  worker.session = coordinator->open_session(hello_of({}), worker.channel);
  settle();
  const auto messages = worker.channel->take();
  ASSERT_THAT(messages, SizeIs(1));
  EXPECT_EQ(messages[0].welcome().store_id(), id);
}

TEST_F(CoordinatorTest, ARunHasABoundedNumberOfMetricNames) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  auto many = started(1, 1);
  const auto add = [](ablate::v1::RunBatch& batch, const std::string& name) {
    ablate::v1::Series& series = *batch.add_series();
    series.set_name(name);
    series.add_steps(1);
    series.add_values(1);
    series.add_times_ms(1);
  };
  for (int i = 0; i < 20'000; ++i) add(many, "metric " + std::to_string(i));
  add(many, "val/top1");  // of a column: it comes last, and is stored all the same
  say(worker, many);
  auto last = ended(1, 2);
  add(last, "metric 0");
  add(last, std::string(1000, 'x'));
  say(worker, last);
  EXPECT_EQ(trial(1).state, TrialState::kCompleted) << "too many names fail no trial";
  EXPECT_THAT(read([](storage::Database& db) { return storage::MetricStore{db}.names(1); }),
              AllOf(SizeIs(2001), Contains("val/top1")));
  EXPECT_EQ(run(1).refused_lines, 18'001u) << "and it is told";
  EXPECT_EQ(run(1).refused_example, "'metric 2000' (a run has at most 2000 metric names)");
}

TEST_F(CoordinatorTest, ARunHasABoundedNumberOfPointsAndCheckpoints) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  const auto add = [](ablate::v1::RunBatch& batch, std::uint32_t from, std::uint32_t to) {
    ablate::v1::Series& series = *batch.add_series();
    series.set_name("val/top1");
    for (std::uint32_t step = from; step < to; ++step) {
      series.add_steps(step);
      series.add_values(step);
      series.add_times_ms(step);
      batch.add_checkpoints()->set_step(step);
    }
  };
  auto first = started(1, 1);
  add(first, 0, 1000);
  say(worker, first);
  // as if it had said so many
  storage::Database{folder / "results.db", storage::Database::Mode::kWrite}.execute(
      "UPDATE metric_summary SET count = " + std::to_string(storage::kWholeRun));
  auto last = ended(1, 2);
  add(last, 1000, 21'000);
  say(worker, last);
  EXPECT_EQ(trial(1).state, TrialState::kCompleted) << "saying too much fails no trial";
  EXPECT_EQ(run(1).refused_lines, 15'000u) << "and it is told";
  EXPECT_EQ(run(1).step, 20'999u);
  read([](storage::Database& db) {
    EXPECT_EQ(storage::MetricStore{db}.points(1, {}, 0), 6000u);
    EXPECT_EQ(storage::MetricStore{db}.summaries(1)[0].last, 20'999);
    const auto checkpoints = storage::TrialStore{db}.checkpoints_of(1);
    EXPECT_THAT(checkpoints, SizeIs(100));
    EXPECT_EQ(checkpoints[0].step, 20'999u);
  });
}

TEST_F(CoordinatorTest, AWorkerWithOtherDataThanThePinnedGetsNoTrialOfThatDataAndSpoilsNone) {
  submit(sweep_of("s", 2, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1, "f1"));
  say(worker, ended(1, 2));
  EXPECT_EQ(worker.take_assigned().back().data_fingerprint(), "f1");
  say(worker, started(2, 1, "f2"));
  EXPECT_EQ(trial(2).state, TrialState::kQueued);
  EXPECT_THAT(trial(2).reason, AllOf(HasSubstr("f1"), HasSubstr("f2"), HasSubstr("worker 'w'")));
  EXPECT_THAT(worker.take_said(), Contains("fenced 2"));
  EXPECT_THAT(worker.take_assigned(), IsEmpty());
  FakeWorker right = connect({.name = "right"});
  ASSERT_THAT(right.take_assigned(), SizeIs(1));
  say(right, started(3, 1, "f1"));
  EXPECT_EQ(trial(2).state, TrialState::kRunning);
}

TEST_F(CoordinatorTest, AWorkerWithOtherWeightsOfTheNameGetsNoTrialOfThemAndSpoilsNone) {
  submit(tuning_of("s", 2, "regnet"));
  FakeWorker first = connect({.name = "first", .weights = {"regnet"}});
  say(first, started_from(1, 1, "regnet", "aa"));
  FakeWorker other = connect({.name = "other", .weights = {"regnet"}});
  other.take_assigned();
  say(other, started_from(2, 1, "regnet", "bb"));
  EXPECT_EQ(trial(2).state, TrialState::kQueued);
  EXPECT_EQ(trial(2).reason, "the only slot is busy") << "the first worker's";
  EXPECT_EQ(
      run(2).reason,
      "weights 'regnet' on worker 'other' have the SHA-256 bb, this store's results are of aa; give the "
      "worker the same file, or the weights another name");
  EXPECT_THAT(other.take_said(), Contains("fenced 2"));
  EXPECT_THAT(other.take_assigned(), IsEmpty());
  disconnect(first);
  EXPECT_EQ(trial(2).reason, run(2).reason);
}

TEST_F(CoordinatorTest, WhereTheRecipeSaysWhichFileItWantsTheNameMayStandForAnother) {
  submit(tuning_of("named", 1, "regnet"));
  FakeWorker first = connect({.name = "first", .weights = {"regnet"}});
  say(first, started_from(1, 1, "regnet", "aa"));
  sweeps::SweepSpec wanting = tuning_of("wanting", 1, "regnet", "bb");
  wanting.rows[0].config = R"({"row":"that wants bb"})";
  submit(wanting);
  FakeWorker other = connect({.name = "other", .weights = {"regnet"}});
  ASSERT_THAT(other.take_assigned(), SizeIs(1));
  say(other, started_from(2, 1, "regnet", "bb"));
  EXPECT_EQ(trial(2).state, TrialState::kRunning);
}

TEST_F(CoordinatorTest, ARefusedTrialGoesToAnotherWorker) {
  submit(sweep_of("s", 1, 1));
  FakeWorker picky = connect({.name = "picky"});
  refuse(picky, 1, "no room on the disk", false);
  EXPECT_THAT(picky.take_assigned(), SizeIs(1)) << "the first assignment, and no second";
  EXPECT_EQ(trial(1).reason, "worker picky refused it: no room on the disk");
  FakeWorker other = connect({.name = "other"});
  EXPECT_THAT(other.take_assigned(), SizeIs(1));
}

TEST_F(CoordinatorTest, ATrialThatCanNeverRunFailsAtOnce) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  refuse(worker, 1, "argv[0] is no program", true);
  EXPECT_EQ(trial(1).state, TrialState::kFailed);
  EXPECT_THAT(trial(1).reason, HasSubstr("argv[0] is no program"));
}

TEST_F(CoordinatorTest, AResumedAttemptGetsTheCheckpointsOfTheEarlierOnes) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  auto first = started(1, 1);
  auto& checkpoint = *first.add_checkpoints();
  checkpoint.set_step(40);
  checkpoint.set_path("/runs/1/1/40.ckpt");
  checkpoint.set_sha256("abc");
  say(worker, first);
  say(worker, ended(1, 2, RunEnded::STATUS_STOPPED));
  const auto again = worker.take_assigned().back();
  ASSERT_EQ(again.checkpoints_size(), 1);
  EXPECT_EQ(again.checkpoints(0).run(), 1u);
  EXPECT_EQ(again.checkpoints(0).step(), 40u);
  EXPECT_EQ(again.checkpoints(0).host(), "w-host");
}

TEST_F(CoordinatorTest, AFailureBacksOffAndIsRetriedByPolicy) {
  sweeps::SweepSpec spec = sweep_of("s", 1, 1);
  spec.max_retries = 1;
  submit(spec);
  FakeWorker worker = connect();
  say(worker, ended(1, 1, RunEnded::STATUS_FAILED, "killed by SIGSEGV (11)"));
  EXPECT_EQ(trial(1).reason, "runs again 1 s after it failed");
  EXPECT_THAT(worker.take_assigned(), SizeIs(1));
  pass(2s);
  EXPECT_THAT(worker.take_assigned(), SizeIs(1));
}

TEST_F(CoordinatorTest, AFailedTrialGoesToAnotherHostFirst) {
  sweeps::SweepSpec spec = sweep_of("s", 1, 2);
  spec.max_retries = 3;
  submit(spec);
  FakeWorker a = connect({.name = "a"}), b = connect({.name = "b"});
  const auto first = a.take_assigned(), second = b.take_assigned();
  ASSERT_THAT(first, SizeIs(1));
  ASSERT_THAT(second, SizeIs(1));
  say(a, ended(first[0].run(), 1, RunEnded::STATUS_FAILED, "killed by SIGSEGV (11)"));
  pass(2s);
  EXPECT_THAT(a.take_assigned(), SizeIs(0)) << "its slot stays free for others";
  EXPECT_EQ(trial(first[0].trial()).reason, "first tried on another host than a-host, where it failed");
  say(b, ended(second[0].run(), 1, RunEnded::STATUS_COMPLETED));
  const auto third = b.take_assigned();
  ASSERT_THAT(third, SizeIs(1));
  EXPECT_EQ(third[0].trial(), first[0].trial());
}

TEST_F(CoordinatorTest, WhatASweepCountsAsInfrastructureIsLostAndTheWorkerIsAskedForItsPatterns) {
  sweeps::SweepSpec spec = sweep_of("s", 1, 1);
  spec.retry_on = protocol::retry_rules(R"([["exit 75", "infrastructure"], ["log NCCL .*", 0]])");
  spec.limits.log = 4096, spec.limits.nan_fails = true;
  submit(spec);
  FakeWorker worker = connect();
  const auto assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1));
  EXPECT_THAT(assigned[0].log_patterns(), testing::ElementsAre("NCCL .*"));
  EXPECT_EQ(assigned[0].log_limit_bytes(), 4096u);
  EXPECT_TRUE(assigned[0].nan_fails());
  auto no_node = ended(1, 1, RunEnded::STATUS_FAILED, "exit code 75");
  no_node.mutable_ended()->set_exit_code(75);
  no_node.mutable_ended()->set_failure(ablate::v1::FAILURE_CLASS_TRIAL);
  say(worker, no_node);
  EXPECT_THAT(worker.take_assigned(), SizeIs(1)) << "after the first loss at once";
  auto nccl = ended(2, 1, RunEnded::STATUS_FAILED, "exit code 75");
  nccl.mutable_ended()->set_exit_code(75);
  nccl.mutable_ended()->add_log_patterns("NCCL .*");
  say(worker, nccl);
  EXPECT_EQ(trial(1).state, storage::TrialState::kFailed) << "the log's rule goes before that of the code";
}

}  // namespace
}  // namespace abl::scheduler
