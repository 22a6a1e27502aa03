// SPDX-License-Identifier: Apache-2.0
// Sweeps and workers as the services tell of them: submitted, cancelled, removed, watched; sessions.
#include "storage/removal.h"
#include "tests/scheduler/services_fixture.h"

namespace abl::scheduler {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(ServicesTest, ASweepGoesFromItsFileToItsTable) {
  SubmitResponse submitted;
  ASSERT_TRUE(submit(file_of("s"), &submitted).ok());
  EXPECT_TRUE(submitted.created());
  EXPECT_EQ(submitted.new_trials(), 2u);
  EXPECT_EQ(submitted.sweep().state(), SWEEP_STATE_ACTIVE);
  const auto worker = connect({.slots = 1});
  for (std::uint32_t run = 1; run <= 2; ++run) {
    const SchedulerMessage assign = worker->hear();
    ASSERT_EQ(assign.assign().run(), run);
    worker->say(started(run, 1));
    worker->say(measured(run, 2, 70.0 + run));
    worker->say(ended(run, 3));
    for (std::uint64_t seq = 1; seq <= 3; ++seq) EXPECT_EQ(worker->hear().ack().seq(), seq);
  }
  const Table table = table_of(sweep_request("s"));
  ASSERT_EQ(table.rows_size(), 2);
  EXPECT_EQ(table.rows(0).cells(0).text(), "71.00");
  EXPECT_EQ(table.rows(1).cells(0).text(), "72.00");
  EXPECT_TRUE(worker->finish().ok());
}

TEST_F(ServicesTest, ABadFileIsRefusedWithALineForEachProblem) {
  const grpc::Status status = submit(file_of("s", "ablate: 1\nname: s\nbsae: {}\nrows: []\nseeds: []\n"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), AllOf(HasSubstr("s.yaml:3:1: bsae:"), HasSubstr("\ns.yaml:5:")));
  Patience context;
  ValidateRequest request;
  *request.mutable_file() = file_of("s", "ablate: 1\nname: s\nbsae: {}\nrows: []\nseeds: []\n");
  ValidateResponse response;
  ASSERT_TRUE(sweeps->Validate(&context, request, &response).ok());
  EXPECT_GE(response.problems_size(), 2);
}

TEST_F(ServicesTest, TheSameFileIsTheSameSweepAndAnotherIsRefused) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  SubmitResponse again;
  ASSERT_TRUE(submit(file_of("s"), &again).ok());
  EXPECT_FALSE(again.created());
  std::string other = kSweep;
  other.replace(other.find("QQQ-W"), 5, "QKK-W");
  EXPECT_EQ(submit(file_of("s", other)).error_code(), grpc::StatusCode::ALREADY_EXISTS);
}

TEST_F(ServicesTest, APlanStoresNoSweepAndSaysWhyCountsAreMissing) {
  Patience context, other;
  PlanRequest request;
  *request.mutable_file() = file_of("s");
  SweepPlan plan;
  ASSERT_TRUE(sweeps->Plan(&context, request, &plan).ok());
  EXPECT_EQ(plan.trials(), 2u);
  EXPECT_THAT(plan.counts_missing(), HasSubstr("trainer"));
  ListSweepsResponse list;
  ASSERT_TRUE(sweeps->ListSweeps(&other, {}, &list).ok());
  EXPECT_EQ(list.sweeps_size(), 0);
}

TEST_F(ServicesTest, AnUnknownSweepIsNotFound) {
  ASSERT_TRUE(submit(file_of("msf-sharing")).ok());
  Patience context, other;
  SweepDetail detail;
  const grpc::Status status = sweeps->GetSweep(&context, sweep_request("msf-sharin"), &detail);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("msf-sharing"));
  SweepSummary summary;
  EXPECT_EQ(sweeps->CancelSweep(&other, sweep_request("x"), &summary).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(ServicesTest, CancelAnswersWithTheSweepAsItIsThen) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  Patience context, other;
  SweepSummary summary;
  ASSERT_TRUE(sweeps->CancelSweep(&context, sweep_request("s"), &summary).ok());
  EXPECT_EQ(summary.state(), SWEEP_STATE_CANCELLED);
  PauseSweepRequest pause;
  pause.set_sweep("s");
  EXPECT_EQ(sweeps->PauseSweep(&other, pause, &summary).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(ServicesTest, ATrialIsCancelledAndRetriedAndTheOthersGoOn) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  CancelTrialRequest request;
  request.set_sweep("s");
  request.set_row("a");
  const auto cancel = [&](std::int64_t seed) {
    request.set_seed(seed);
    Patience context;
    SweepSummary summary;
    const grpc::Status status = sweeps->CancelTrial(&context, request, &summary);
    return std::pair{status, summary};
  };
  const auto [done, summary] = cancel(0);
  ASSERT_TRUE(done.ok()) << done.error_message();
  EXPECT_EQ(summary.state(), SWEEP_STATE_ACTIVE);
  EXPECT_EQ(summary.trials().cancelled(), 1u);
  EXPECT_EQ(summary.trials().queued(), 1u);
  EXPECT_EQ(cancel(0).first.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(cancel(0).first.error_message(), "the trial of row a and seed 0 is already cancelled");
  EXPECT_EQ(cancel(7).first.error_code(), grpc::StatusCode::NOT_FOUND);
  request.set_row("x");
  EXPECT_EQ(cancel(0).first.error_message(), "sweep s has no trial of row 'x' and seed 0");
  RetrySweepRequest retry;
  retry.set_sweep("s");
  retry.set_row("a");
  retry.set_seed(0);
  Patience context;
  RetrySweepResponse retried;
  ASSERT_TRUE(sweeps->RetrySweep(&context, retry, &retried).ok());
  EXPECT_EQ(retried.retried(), 1u);
  EXPECT_EQ(retried.sweep().trials().queued(), 2u);
}

TEST_F(ServicesTest, ARetryOfOneSeedLeavesTheOthers) {
  std::string text = kSweep;
  text.replace(text.find("seeds: [0]"), 10, "seeds: [0, 1]");
  ASSERT_TRUE(submit(file_of("s", text)).ok());
  SweepSummary summary;
  Patience cancel;
  ASSERT_TRUE(sweeps->CancelSweep(&cancel, sweep_request("s"), &summary).ok());
  RetrySweepRequest retry;
  retry.set_sweep("s");
  retry.set_seed(1);
  RetrySweepResponse retried;
  const auto ask = [&] {
    Patience context;
    return sweeps->RetrySweep(&context, retry, &retried);
  };
  EXPECT_EQ(ask().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "of no row";
  retry.set_row("b");
  ASSERT_TRUE(ask().ok());
  EXPECT_EQ(retried.retried(), 1u);
  EXPECT_EQ(retried.sweep().trials().queued(), 1u);
  EXPECT_EQ(retried.sweep().trials().cancelled(), 3u);
  retry.set_seed(2);
  EXPECT_EQ(ask().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ServicesTest, ACancelledTrialStopsWhereNobodyElseWantsIt) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  ASSERT_TRUE(submit(file_of("t")).ok());  // the same trials
  const auto worker = connect({.slots = 2});
  std::set<std::uint32_t> runs_under_way;
  for (int i = 0; i < 2; ++i) runs_under_way.insert(worker->hear().assign().run());
  const auto cancel = [&](const std::string& sweep) {
    CancelTrialRequest request;
    request.set_sweep(sweep);
    request.set_row("a");
    Patience context;
    SweepSummary summary;
    EXPECT_TRUE(sweeps->CancelTrial(&context, request, &summary).ok());
    return summary;
  };
  const SweepSummary first = cancel("s");
  EXPECT_EQ(first.trials().cancelled(), 1u);
  EXPECT_EQ(first.trials().leased(), 1u);
  cancel("t");
  const SchedulerMessage told = worker->hear();  // nothing came before: sweep t wanted it
  ASSERT_TRUE(told.has_stop()) << told.ShortDebugString();
  EXPECT_TRUE(runs_under_way.contains(told.stop().run()));
  EXPECT_EQ(told.stop().reason(), "cancelled");
}

TEST_F(ServicesTest, WhatIsAdjustedBecomesTheSweepsAndTheRestStays) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  AdjustSweepRequest request;
  request.set_sweep("s");
  SweepSummary summary;
  const auto adjust = [&] {
    Patience context;
    return sweeps->AdjustSweep(&context, request, &summary);
  };
  request.set_priority(7);
  request.set_weight(2.5);
  ASSERT_TRUE(adjust().ok());
  EXPECT_EQ(summary.priority(), 7);
  EXPECT_EQ(summary.weight(), 2.5);
  EXPECT_TRUE(summary.breaker());
  request.Clear();
  request.set_sweep("s");
  request.set_max_running(3);
  request.set_breaker(false);
  ASSERT_TRUE(adjust().ok());
  EXPECT_EQ(summary.priority(), 7);
  EXPECT_EQ(summary.max_running(), 3u);
  EXPECT_FALSE(summary.breaker());
  request.set_weight(-1);
  EXPECT_EQ(adjust().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.clear_weight();
  request.set_sweep("x");
  EXPECT_EQ(adjust().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ServicesTest, ASweepIsRemovedAndItsFileCanBeSubmittedAgain) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  RemoveSweepRequest request;
  request.set_sweep("s");
  RemoveSweepResponse removed;
  {
    Patience context;
    const grpc::Status status = sweeps->RemoveSweep(&context, request, &removed);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(status.error_message(), HasSubstr("ablate cancel s"));
  }
  SweepSummary summary;
  Patience cancel;
  ASSERT_TRUE(sweeps->CancelSweep(&cancel, sweep_request("s"), &summary).ok());
  wait_until_removed(request);
  SubmitResponse again;
  ASSERT_TRUE(submit(file_of("s"), &again).ok());
  EXPECT_TRUE(again.created());
  EXPECT_EQ(again.new_trials(), 2u);
}

TEST_F(ServicesTest, ARemovalThatWasBegunGoesOnWithTheNextStart) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  SweepSummary summary;
  Patience cancel;
  ASSERT_TRUE(sweeps->CancelSweep(&cancel, sweep_request("s"), &summary).ok());
  stop();
  RemoveSweepRequest request;
  {
    storage::Database db{folder / "results.db", storage::Database::Mode::kWrite};
    request.set_id(storage::Removal{db}.begin("s", clock.now()));
  }
  start();
  wait_until_removed(request);
}

TEST_F(ServicesTest, WhoWatchesASweepHearsThatItHasAnotherName) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  Patience context, renaming;
  const auto watch = sweeps->WatchSweep(&context, sweep_request("s"));
  SweepProgress progress;
  ASSERT_TRUE(watch->Read(&progress));
  RenameSweepRequest request;
  request.set_sweep("s");
  request.set_name("not a name");
  SweepSummary summary;
  {
    Patience other;
    EXPECT_EQ(sweeps->RenameSweep(&other, request, &summary).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
  request.set_name("t");
  ASSERT_TRUE(sweeps->RenameSweep(&renaming, request, &summary).ok());
  EXPECT_EQ(summary.name(), "t");
  while (watch->Read(&progress)) {
  }
  const grpc::Status end = watch->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(end.error_message(), "sweep s was renamed: it is now t");
  SubmitResponse same;
  ASSERT_TRUE(submit(file_of("t"), &same).ok());
  EXPECT_FALSE(same.created()) << "the file with its new name is this sweep";
}

TEST_F(ServicesTest, ASweepIsAnnotatedAndItsWatcherSeesIt) {
  SubmitRequest with_tag;
  *with_tag.mutable_file() = file_of("s");
  with_tag.add_tags("paper");
  SubmitResponse submitted;
  {
    Patience context;
    ASSERT_TRUE(sweeps->Submit(&context, with_tag, &submitted).ok());
  }
  EXPECT_THAT(submitted.sweep().tags(), testing::ElementsAre("paper"));
  Patience watching;
  const auto watch = sweeps->WatchSweep(&watching, sweep_request("s"));
  SweepProgress progress;
  ASSERT_TRUE(watch->Read(&progress));
  const auto annotate = [&](auto change) {
    AnnotateSweepRequest request;
    request.set_sweep("s");
    change(request);
    Patience context;
    SweepSummary summary;
    const grpc::Status status = sweeps->AnnotateSweep(&context, request, &summary);
    return std::pair{status, summary};
  };
  const auto [ok, summary] = annotate([](auto& request) {
    request.add_add_tags("b/1");
    request.add_add_tags("paper");
    request.add_remove_tags("never there");
    request.set_pinned(true);
    request.set_notes("Groups above 8 **diverge**.");
  });
  ASSERT_TRUE(ok.ok()) << ok.error_message();
  EXPECT_THAT(summary.tags(), testing::ElementsAre("b/1", "paper"));
  EXPECT_TRUE(summary.pinned());
  while (watch->Read(&progress) && !progress.summary().pinned()) {
  }
  EXPECT_TRUE(progress.summary().pinned());
  watching.TryCancel();
  {
    Patience context;
    SweepDetail detail;
    ASSERT_TRUE(sweeps->GetSweep(&context, sweep_request("s"), &detail).ok());
    EXPECT_EQ(detail.notes(), "Groups above 8 **diverge**.");
  }

  const auto refusal = [&](auto change) {
    const grpc::Status status = annotate(change).first;
    return std::pair{status.error_code(), status.error_message()};
  };
  using testing::HasSubstr;
  using testing::Pair;
  EXPECT_THAT(refusal([](auto& request) { request.add_add_tags("two words"); }),
              Pair(grpc::StatusCode::INVALID_ARGUMENT, HasSubstr("invalid tag 'two words'")));
  EXPECT_THAT(refusal([](auto& request) { request.add_add_tags(std::string(51, 'a')); }),
              Pair(grpc::StatusCode::INVALID_ARGUMENT, HasSubstr("at most 50")));
  EXPECT_THAT(refusal([](auto& request) {
                for (int i = 0; i < 19; ++i) request.add_add_tags("t" + std::to_string(i));
              }),
              Pair(grpc::StatusCode::FAILED_PRECONDITION, HasSubstr("would have 21 tags; the limit is 20")));
  EXPECT_THAT(refusal([](auto& request) { request.set_archived(true); }),
              Pair(grpc::StatusCode::FAILED_PRECONDITION, HasSubstr("trials that wait or run")));
  EXPECT_THAT(refusal([](auto& request) { request.set_notes(std::string((64 << 10) + 1, 'a')); }),
              Pair(grpc::StatusCode::INVALID_ARGUMENT, HasSubstr("65537 bytes")));
  EXPECT_THAT(refusal([](auto& request) {
                request.set_notes("mine");
                request.set_expected_notes("what was there before");
                request.set_pinned(false);
              }),
              Pair(grpc::StatusCode::ABORTED, HasSubstr("somebody has changed the notes")));
  EXPECT_TRUE(annotate([](auto& request) { request.add_remove_tags("b/1"); }).second.pinned())
      << "a change that is refused changes nothing of it";
  SubmitResponse again;
  with_tag.set_tags(0, "later");
  Patience context;
  ASSERT_TRUE(sweeps->Submit(&context, with_tag, &again).ok());
  EXPECT_FALSE(again.created());
  EXPECT_THAT(again.sweep().tags(), testing::ElementsAre("later", "paper"));
}

TEST_F(ServicesTest, AnEndedSweepIsArchivedUntilItIsWantedAgain) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  SweepSummary summary;
  {
    Patience context;
    ASSERT_TRUE(sweeps->CancelSweep(&context, sweep_request("s"), &summary).ok());
  }
  AnnotateSweepRequest request;
  request.set_sweep("s");
  request.set_archived(true);
  {
    Patience context;
    ASSERT_TRUE(sweeps->AnnotateSweep(&context, request, &summary).ok());
  }
  EXPECT_TRUE(summary.archived());
  RetrySweepRequest retry;
  retry.set_sweep("s");
  RetrySweepResponse retried;
  Patience context;
  ASSERT_TRUE(sweeps->RetrySweep(&context, retry, &retried).ok());
  EXPECT_EQ(retried.retried(), 2u);
  EXPECT_FALSE(retried.sweep().archived());
}

TEST_F(ServicesTest, AWatcherSeesEveryTrialOnceAndTheEnd) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  Patience context;
  const auto watch = sweeps->WatchSweep(&context, sweep_request("s"));
  SweepProgress progress;
  ASSERT_TRUE(watch->Read(&progress));
  EXPECT_EQ(progress.trials_size(), 2);
  EXPECT_EQ(progress.summary().trials().queued(), 2u);
  const auto worker = connect({.slots = 2});
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t run = worker->hear().assign().run();
    worker->say(measured(run, 1, 80));
    worker->say(ended(run, 2));
  }
  Table table;  // the last that came: a message has one where it is another
  while (watch->Read(&progress))
    if (progress.has_table()) table = progress.table();
  EXPECT_TRUE(watch->Finish().ok());
  EXPECT_EQ(progress.summary().state(), SWEEP_STATE_COMPLETED);
  ASSERT_EQ(table.rows_size(), 2);
  for (const auto& row : table.rows()) EXPECT_EQ(row.cells(0).n(), 1u) << "of the end";
}

TEST_F(ServicesTest, AFollowedLogEndsWithItsRun) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  const auto worker = connect();
  const std::uint32_t run = worker->hear().assign().run();
  RunBatch first = started(run, 1);
  first.set_log("step 1\n");
  worker->say(first);
  EXPECT_EQ(worker->hear().ack().seq(), 1u);

  Patience context;
  TailLogRequest request;
  request.set_run(run);
  request.set_follow(true);
  const auto log = runs->TailLog(&context, request);
  LogText text;
  ASSERT_TRUE(log->Read(&text));
  EXPECT_EQ(text.text(), "step 1\n");
  RunBatch last = ended(run, 2);
  last.set_log("step 2\n");
  worker->say(last);
  ASSERT_TRUE(log->Read(&text));
  EXPECT_EQ(text.text(), "step 2\n");
  EXPECT_EQ(text.offset(), 7u);
  EXPECT_FALSE(log->Read(&text));
  EXPECT_TRUE(log->Finish().ok());
}

TEST_F(ServicesTest, NothingIsSubmittedIntoAFileThatWasDeleted) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  for (const char* end : {"", "-wal", "-shm"})
    std::filesystem::remove(folder / ("results.db" + std::string{end}));
  SubmitResponse response;
  const grpc::Status status = submit(file_of("t"), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_THAT(status.error_message(),
              AllOf(HasSubstr("results.db was deleted"), HasSubstr("start it again")));
  EXPECT_EQ(status.error_message().find('\n'), std::string::npos);
  EXPECT_EQ(response.new_trials(), 0u);
}

TEST_F(ServicesTest, ASessionThatDoesNotBeginWithHelloIsRefused) {
  ScriptedWorker worker{channel};
  worker.say(started(1, 1));
  EXPECT_EQ(worker.finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(ServicesTest, ANewerWorkerHearsWhichProtocolsAreSpoken) {
  Hello hello = hello_of({});
  hello.set_lowest_protocol(2);
  hello.set_highest_protocol(3);
  ScriptedWorker worker{channel};
  worker.hello(hello);
  const grpc::Status status = worker.finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(),
              AllOf(HasSubstr("2 to 3"), HasSubstr("1 to 1"), HasSubstr("upgrade the scheduler first")));
}

TEST_F(ServicesTest, WorkersAreListedConnectedAndNot) {
  const auto worker = connect({.name = "gpu-box", .slots = 2});
  const auto listed = [&] {
    Patience context;
    ListWorkersResponse response;
    EXPECT_TRUE(workers->ListWorkers(&context, {}, &response).ok());
    return response;
  };
  ListWorkersResponse list = listed();
  ASSERT_EQ(list.workers_size(), 1);
  EXPECT_EQ(list.workers(0).name(), "gpu-box");
  EXPECT_EQ(list.workers(0).slots_size(), 2);
  EXPECT_TRUE(list.workers(0).connected());
  stop();
  start();
  EXPECT_FALSE(listed().workers(0).connected()) << "nobody is connected to a scheduler that has just started";
}

TEST_F(ServicesTest, AListedSlotNamesItsRunUntilThatEnds) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  const auto worker = connect({.slots = 3});
  const auto slots = [&] {
    Patience context;
    ListWorkersResponse response;
    EXPECT_TRUE(workers->ListWorkers(&context, {}, &response).ok());
    std::vector<std::uint32_t> held;
    for (const Slot& slot : response.workers(0).slots()) held.push_back(slot.run());
    return held;
  };
  EXPECT_TRUE(worker->hear().has_assign());
  EXPECT_TRUE(worker->hear().has_assign());
  EXPECT_THAT(slots(), ElementsAre(1, 2, 0));
  worker->say(ended(1, 1));
  EXPECT_TRUE(worker->hear().has_ack());
  EXPECT_THAT(slots(), ElementsAre(0, 2, 0));
}

TEST_F(ServicesTest, AStoppingSchedulerSaysGoodbye) {
  const auto worker = connect();
  stop();
  EXPECT_EQ(worker->finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  start();
}

}  // namespace
}  // namespace abl::scheduler
