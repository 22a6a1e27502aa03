// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/run.h"

#include <fmt/format.h>
#include <signal.h>

#include "base/child_process.h"
#include "tests/agent/run_fixture.h"
#include "worker/agent/leftovers.h"

namespace abl::agent {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::StartsWith;

TEST_F(RunTest, WhatTheProgramSaysComesInOrderAndItsStdinIsClosed) {
  start(
      R"(cat; echo "$ABLATE_SEED $PWD"; echo '{"event":"metric","step":3,"values":{"a":0.25}}'; echo oops >&2;
           echo '{"event":"end","status":"completed","reason":"done"}')");
  const auto batches = keeper.wait_for_end();
  EXPECT_THAT(points(batches, "a"), ElementsAre(Pair(3U, 0.25)));
  EXPECT_THAT(log_of(batches), AllOf(HasSubstr("0 " + directory().string() + "\n"), HasSubstr("oops\n")));
  const auto& ended = batches.back().ended();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_COMPLETED);
  EXPECT_EQ(ended.reason(), "done");
  EXPECT_EQ(ended.exit_code(), 0);
  EXPECT_EQ(read_file(directory() / "config.json"), R"({"params":{},"seed":0})");
  EXPECT_EQ(read_file(directory() / "metrics.csv"), "step,metric,value\n3,a,0.25\n");
}

TEST_F(RunTest, AnExitCodeIsAFailureWithTheLastLines) {
  const auto ended = end_of("echo reading data; echo 'cannot read x.jpg' >&2; exit 3");
  EXPECT_EQ(ended.status(), RunEnded::STATUS_FAILED);
  EXPECT_THAT(ended.reason(), AllOf(StartsWith("exit code 3; last output: "), HasSubstr("cannot read x.jpg"),
                                    HasSubstr("reading data")));
  EXPECT_EQ(ended.exit_code(), 3);
  EXPECT_TRUE(ended.retryable());
}

TEST_F(RunTest, AKillFromOutsideIsSaidToBePerhapsOutOfMemory) {
  const auto ended = end_of("kill -KILL $$");
  EXPECT_EQ(ended.status(), RunEnded::STATUS_FAILED);
  EXPECT_EQ(ended.reason(), "killed by SIGKILL (9); perhaps out of memory");
  EXPECT_EQ(ended.signal(), SIGKILL);
  EXPECT_FALSE(ended.has_exit_code());
}

TEST_F(RunTest, ASignalAfterTheEndEventIsAFailureAllTheSame) {
  const auto ended = end_of(R"(echo '{"event":"end","status":"completed"}'; kill -SEGV $$)");
  EXPECT_EQ(ended.status(), RunEnded::STATUS_FAILED);
  EXPECT_THAT(ended.reason(), StartsWith("killed by SIGSEGV (11)"));
}

TEST_F(RunTest, ExitCode0OfACommandIsSuccessAlsoWithoutASingleEvent) {
  const auto ended = end_of("exit 0");
  EXPECT_EQ(ended.status(), RunEnded::STATUS_COMPLETED);
  EXPECT_EQ(ended.reason(), "");
  EXPECT_EQ(ended.exit_code(), 0);
}

TEST_F(RunTest, ThatAProgramWasStartedIsSaidWhileItPrintsNothing) {
  const auto before = clock.now().time_since_epoch().count();
  const auto go = folder.path() / "go";
  start("while [ ! -e " + go.string() + " ]; do sleep 0.02; done");
  const auto launched = keeper.launched();
  ASSERT_TRUE(launched);
  EXPECT_GE(*launched, before);
  EXPECT_LE(*launched, clock.now().time_since_epoch().count());
  write_file(go, "");
  const auto batches = keeper.wait_for_end();
  EXPECT_FALSE(batches.front().has_started()) << "what it goes on from is not known yet";
  EXPECT_TRUE(batches.back().has_ended());
}

TEST_F(RunTest, AProgramThatIsQuicklyDoneCostsNoBatchMore) {
  start("exit 0");
  const auto batches = keeper.wait_for_end();
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_TRUE(batches[0].has_launched_ms() && batches[0].has_started() && batches[0].has_ended());
}

TEST_F(RunTest, AnEndEventRulesOverExitCode0) {
  const auto ended = end_of(R"(echo '{"event":"end","status":"failed","reason":"diverged"}'; exit 0)");
  EXPECT_EQ(ended.status(), RunEnded::STATUS_FAILED);
  EXPECT_EQ(ended.reason(), "diverged");
}

TEST_F(RunTest, OurTrainerMustSayItsEnd) {
  settings.trainer = write_script(folder.path() / "trainer", "exit 0");
  auto assign = shell_assignment(1, "");
  assign.clear_argv();
  start(assign);
  const auto ended = keeper.wait_for_end().back().ended();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_FAILED);
  EXPECT_EQ(ended.reason(), "ended with exit code 0 but without an end event");
}

TEST_F(RunTest, ACommandThatWasStoppedHasNotCompletedWhateverItsExitCode) {
  auto& stopped = start("trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(keeper.heard("ready"));
  stopped.stop("paused");
  EXPECT_EQ(keeper.wait_for_end().back().ended().status(), RunEnded::STATUS_STOPPED);
}

TEST_F(RunTest, ARunThatExceedsItsTimeIsStoppedAndHasFailedForThatAndWillNotBeTriedAgain) {
  auto assign = shell_assignment(1, "trap 'echo checkpointing; exit 0' TERM; while :; do sleep 0.01; done");
  assign.set_time_limit_s(1);
  start(assign);
  const auto batches = keeper.wait_for_end();
  const auto ended = batches.back().ended();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_FAILED);
  EXPECT_EQ(ended.reason(), "ran for longer than 1s, its limits.time (exit code 0)");
  EXPECT_FALSE(ended.retryable());
  EXPECT_THAT(log_of(batches), HasSubstr("checkpointing\n"));
}

TEST_F(RunTest, ARunThatPrintsNothingIsStoppedAndOneThatPrintsIsNot) {
  auto silent = shell_assignment(1, "echo begun; exec sleep 60");
  silent.set_stall_limit_s(1);
  start(silent);
  const auto ended = keeper.wait_for_end().back().ended();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_FAILED);
  EXPECT_THAT(ended.reason(), StartsWith("printed nothing for 1s, its limits.stall"));
  EXPECT_TRUE(ended.retryable());
}

TEST_F(RunTest, ARunThatSpeaksIsNotStalled) {
  auto speaking = shell_assignment(1, "for i in 1 2 3 4 5 6; do echo $i; sleep 0.3; done");
  speaking.set_stall_limit_s(1);
  start(speaking);
  EXPECT_EQ(keeper.wait_for_end().back().ended().status(), RunEnded::STATUS_COMPLETED);
}

TEST_F(RunTest, AFirstValueThatIsNotFiniteEndsTheRunWhereItsSweepWantsThat) {
  for (const char* then : {"exec sleep 60", "exit 0", R"(echo '{"event":"end","status":"completed"}')"}) {
    auto assign = shell_assignment(1, metric_line(3, "0.5") + metric_line(4, "NaN") + then);
    assign.set_nan_fails(true);
    const auto ended = end_alone(assign);
    EXPECT_EQ(ended.status(), RunEnded::STATUS_FAILED) << then;
    EXPECT_THAT(ended.reason(), StartsWith("val/loss is NaN at step 4, its limits.nan")) << then;
    EXPECT_EQ(ended.failure(), ablate::v1::FAILURE_CLASS_TRIAL);
    EXPECT_FALSE(ended.retryable()) << "the same seed would meet it again";
  }
}

TEST_F(RunTest, ARunThatCompletesWithAValueThatIsNotFiniteHasFailedAlsoWhereItWasAskedToStop) {
  auto assign = shell_assignment(
      1,
      "trap '" + std::string{R"(echo {\"event\":\"metric\",\"step\":4,\"values\":{\"val/loss\":NaN}}; )"} +
          R"(echo {\"event\":\"end\",\"status\":\"completed\"}; exit 0' TERM; echo ready; while :; do sleep 0.01; done)");
  assign.set_nan_fails(true);
  auto& stopped = start(assign);
  ASSERT_TRUE(keeper.heard("ready"));
  stopped.stop("paused");
  const auto ended = keeper.wait_for_end().back().ended();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_FAILED);
  EXPECT_THAT(ended.reason(), StartsWith("val/loss is NaN at step 4, its limits.nan"));
}

TEST_F(RunTest, AValueThatIsNotFiniteIsAValueLikeOthersOtherwise) {
  EXPECT_EQ(end_of(metric_line(4, "NaN") + "exit 0").status(), RunEnded::STATUS_COMPLETED);
}

TEST_F(RunTest, TheClassOfAFailureFollowsFromItsEnd) {
  const std::vector<std::pair<std::string, ablate::v1::FailureClass>> ends{
      {"exit 1", ablate::v1::FAILURE_CLASS_TRIAL},
      {"kill -SEGV $$", ablate::v1::FAILURE_CLASS_TRIAL},
      {"kill -KILL $$", ablate::v1::FAILURE_CLASS_RESOURCES},
      {"sh -c 'kill -KILL $$'; exit $?", ablate::v1::FAILURE_CLASS_RESOURCES},
      {"echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB' >&2; exit 1",
       ablate::v1::FAILURE_CLASS_RESOURCES},
      {R"(echo '{"event":"end","status":"failed","failure":"data"}'; exit 1)",
       ablate::v1::FAILURE_CLASS_DATA},
      {"exit 0", ablate::v1::FAILURE_CLASS_UNSPECIFIED}};
  for (const auto& [script, expected] : ends)
    EXPECT_EQ(end_alone(shell_assignment(1, script)).failure(), expected) << script;
}

TEST_F(RunTest, AFailedRunSaysWhichPatternsItsLogEndsWith) {
  auto assign = shell_assignment(1,
                                 "echo NCCL error 7 >&2; seq 1 9000; echo 'lucky number 3'; echo early; "
                                 "seq 1 20000; echo NCCL error 9; exit 3");
  for (const char* pattern : {"NCCL error [0-9]+$", "^early$", "lucky (number|star)", "("})
    assign.add_log_patterns(pattern);
  start(assign);
  const auto ended = keeper.wait_for_end().back().ended();
  EXPECT_THAT(ended.log_patterns(), ElementsAre("NCCL error [0-9]+$")) << "of the last 64 KiB";
  EXPECT_EQ(ended.exit_code(), 3);
}

TEST_F(RunTest, TheLogHasTheLimitOfItsSweepWhereThatIsLess) {
  auto assign = shell_assignment(1, "seq 1 100000");
  assign.set_log_limit_bytes(4096);
  start(assign);
  const std::string log = log_of(keeper.wait_for_end());
  EXPECT_LT(log.size(), 5000u);
  EXPECT_THAT(log, AllOf(StartsWith("1\n2\n"), EndsWith("100000\n"), HasSubstr("left out here")));
}

TEST_F(RunTest, ACommandRunsInItsFolderAndFindsItsOwnInTheEnvironment) {
  std::filesystem::create_directory(folder.path() / "project");
  auto assign = shell_assignment(1, "pwd; echo $ABLATE_RUN_DIR; echo seed {seed} in {run_dir}");
  assign.set_folder(folder.path() / "project");
  start(assign);
  const auto batches = keeper.wait_for_end();
  EXPECT_EQ(log_of(batches), fmt::format("{}\n{}\nseed 0 in {}\n", (folder.path() / "project").string(),
                                         directory().string(), directory().string()));
  EXPECT_EQ(batches.back().ended().status(), RunEnded::STATUS_COMPLETED);
}

TEST_F(RunTest, WhereACommandsFolderIsGoneTheRunIsRefusedAndHasNotBegun) {
  auto assign = shell_assignment(1, "exit 0");
  assign.set_folder("/no/such/folder");
  start(assign);
  EXPECT_THAT(keeper.wait_for_end(), IsEmpty());
  EXPECT_EQ(keeper.refusal(), "missing working folder /no/such/folder of the command");
  EXPECT_FALSE(std::filesystem::exists(directory()));
}

TEST_F(RunTest, TheTrainersOwnFailureIsPassedOn) {
  const auto ended = end_of(
      R"(echo '{"event":"end","status":"failed","reason":"no class folders in /x","retryable":false}'; exit 2)");
  EXPECT_EQ(ended.status(), RunEnded::STATUS_FAILED);
  EXPECT_EQ(ended.reason(), "no class folders in /x");
  EXPECT_FALSE(ended.retryable());
}

TEST_F(RunTest, AProgramThatIsNotThereFailsForGood) {
  auto assign = shell_assignment(1, "");
  assign.set_argv(0, "no-such-program-here");
  start(assign);
  const auto ended = keeper.wait_for_end().back().ended();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_FAILED);
  EXPECT_EQ(ended.reason(), "cannot start no-such-program-here: No such file or directory");
  EXPECT_FALSE(ended.retryable());
}

TEST_F(RunTest, AnArgvThatItsTrialCannotFillIsTheTrialsFailureAndNotTheWorkersTrouble) {
  start(shell_assignment(1, "echo {params.rate}"));
  const auto ended = keeper.wait_for_end().back().ended();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_FAILED);
  EXPECT_EQ(ended.reason(), "argv uses {params.rate}, which is not a param of the trial");
  EXPECT_FALSE(ended.retryable());
  EXPECT_THAT(keeper.troubles(), IsEmpty());
}

TEST_F(RunTest, ADocumentThatIsNoJsonIsTheTrialsFailureAndNotTheWorkersTrouble) {
  auto assign = shell_assignment(1, "exit 0");
  assign.set_config_json("{");
  start(assign);
  const auto ended = keeper.wait_for_end().back().ended();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_FAILED);
  EXPECT_THAT(ended.reason(), StartsWith("the trial's argv cannot be filled in from its document: "));
  EXPECT_FALSE(ended.retryable());
  EXPECT_THAT(keeper.troubles(), IsEmpty());
}

TEST_F(RunTest, AStoppedProgramMayWriteItsCheckpoint) {
  auto& stopped =
      start(R"(trap 'echo "{\"event\":\"checkpoint\",\"step\":7,\"path\":\"c.pt\",\"sha256\":\"ab\"}";
                            echo "{\"event\":\"end\",\"status\":\"stopped\"}"; exit 0' TERM
                           echo ready; while :; do sleep 0.01; done)");
  ASSERT_TRUE(keeper.heard("ready"));
  stopped.stop("paused");
  const auto batches = keeper.wait_for_end();
  EXPECT_EQ(batches.back().ended().status(), RunEnded::STATUS_STOPPED);
  EXPECT_EQ(batches.back().ended().reason(), "paused");
  ASSERT_EQ(batches.back().checkpoints_size(), 1);
  EXPECT_EQ(batches.back().checkpoints(0).path(), directory() / "c.pt");
}

TEST_F(RunTest, AProgramThatSaysNoStartHasResumedByTheStepThatItSaysFirst) {
  const auto file = settings.runs_root / "101/0/c.pt";
  std::filesystem::create_directories(file.parent_path());
  write_file(file, "8");
  auto assign = shell_assignment(1, metric_line(9, "0.5"));
  auto& checkpoint = *assign.add_checkpoints();
  checkpoint.set_run(7);
  checkpoint.set_step(8);
  checkpoint.set_host("here");
  checkpoint.set_path(file);
  start(assign);
  RunBatch all;
  for (const auto& batch : keeper.wait_for_end()) all.MergeFrom(batch);
  EXPECT_EQ(all.started().resumed_from_run(), 7U);
  EXPECT_EQ(all.started().resumed_from_step(), 8U);
}

TEST_F(RunTest, AProgramWithoutAHandlerForSigtermIsStoppedToo) {
  auto& stopped = start("echo ready; exec sleep 1000");
  ASSERT_TRUE(keeper.heard("ready"));
  stopped.stop("cancelled");
  const auto ended = keeper.wait_for_end().back().ended();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_STOPPED);
  EXPECT_EQ(ended.reason(), "cancelled (killed by SIGTERM (15) without an end event)");
  EXPECT_EQ(ended.signal(), SIGTERM);
}

TEST_F(RunTest, AProgramThatIgnoresSigtermIsKilledAfterTheGracePeriod) {
  auto assign = shell_assignment(1, "trap '' TERM; echo ready; while :; do sleep 0.01; done");
  assign.set_grace_ms(50);
  auto& stopped = start(assign);
  ASSERT_TRUE(keeper.heard("ready"));
  stopped.stop("cancelled");
  const auto ended = keeper.wait_for_end().back().ended();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_STOPPED);
  EXPECT_EQ(ended.reason(), "cancelled (killed 50 ms after it was to end without an end event)");
  EXPECT_EQ(ended.signal(), SIGKILL);
}

TEST_F(RunTest, WhateverEndsTheProbesOfATrainedModelTheRunHasCompleted) {
  for (const std::string end : {"exit 1", "kill -9 $$", R"(echo '{"event":"end","status":"stopped"}')"}) {
    const auto ended = end_alone(shell_assignment(1, "echo '{\"event\":\"trained\"}'; " + end));
    EXPECT_EQ(ended.status(), RunEnded::STATUS_COMPLETED) << end;
    EXPECT_EQ(ended.reason(), "") << end;
  }
  auto limited = shell_assignment(1, "echo '{\"event\":\"trained\"}'; exec sleep 1000");
  limited.set_stall_limit_s(1);
  limited.set_grace_ms(50);
  EXPECT_EQ(end_alone(limited).status(), RunEnded::STATUS_COMPLETED);
}

TEST_F(RunTest, AProgramThatStaysAfterItsEndEventIsEndedAndHasCompleted) {
  auto assign = shell_assignment(1, R"(echo '{"event":"end","status":"completed"}'; exec sleep 1000)");
  assign.set_grace_ms(50);
  start(assign);
  EXPECT_EQ(keeper.wait_for_end().back().ended().status(), RunEnded::STATUS_COMPLETED);
}

TEST_F(RunTest, GrandchildrenDieWithTheRun) {
  auto& stopped = start("sleep 1000 & echo $! > grandchild; echo ready; wait");
  ASSERT_TRUE(keeper.heard("ready"));
  const pid_t grandchild = pid_in("grandchild");
  ASSERT_TRUE(alive(grandchild));
  stopped.stop("cancelled");
  keeper.wait_for_end();
  EXPECT_TRUE(eventually([&] { return !alive(grandchild); }));
}

TEST_F(RunTest, WhatARunLeavesBehindDoesNotHoldItsEndUp) {
  start(R"(sleep 1000 & echo $! > grandchild; echo '{"event":"end","status":"completed"}')");
  EXPECT_EQ(keeper.wait_for_end().back().ended().status(), RunEnded::STATUS_COMPLETED);
  EXPECT_TRUE(eventually([&] { return !alive(pid_in("grandchild")); }));
}

TEST_F(RunTest, AKilledRunSaysNothingMore) {
  auto& killed = start("echo $$ > self; echo ready; exec sleep 1000");
  ASSERT_TRUE(keeper.heard("ready"));
  killed.kill();
  for (const auto& batch : keeper.wait_for_end()) EXPECT_FALSE(batch.has_ended());
  EXPECT_FALSE(alive(pid_in("self")));
}

TEST_F(RunTest, StoppedThoughNobodyAskedIsAFailure) {
  const auto ended = end_of(R"(echo '{"event":"end","status":"stopped","reason":"no more wishes"}')");
  EXPECT_EQ(ended.status(), RunEnded::STATUS_FAILED);
  EXPECT_EQ(ended.reason(), "ended as stopped without being asked to stop: no more wishes");
  EXPECT_TRUE(ended.retryable());
  EXPECT_FALSE(ended.asked());
}

TEST_F(RunTest, ATrainerThatHearsOfTheMachinesEndBeforeItsWorkerHasBeenAsked) {
  settings.afterthought = kPatience;
  auto& stopped = start(R"(echo ready; while [ ! -e go ]; do sleep 0.01; done;
                           echo '{"event":"end","status":"stopped"}'; echo $$ > self)");
  ASSERT_TRUE(keeper.heard("ready"));
  write_text(directory() / "go", "");
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(directory() / "self"); }));
  stopped.stop("worker is stopping");
  const auto ended = keeper.wait_for_end().back().ended();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_STOPPED);
  EXPECT_TRUE(ended.asked());
}

class ToldToGoTest : public RunTest, public testing::WithParamInterface<const char*> {};

TEST_P(ToldToGoTest, WhoHeedsTheServicesEndBeforeItsWorkerHasBeenAskedIsStopped) {
  settings.afterthought = kPatience;
  auto& stopped =
      start(fmt::format("echo ready; while [ ! -e go ]; do sleep 0.01; done; touch gone; {}", GetParam()));
  ASSERT_TRUE(keeper.heard("ready"));
  write_text(directory() / "go", "");
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(directory() / "gone"); }));
  stopped.stop("worker is stopping");
  const auto ended = keeper.wait_for_end().back().ended();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_STOPPED) << ended.reason();
  EXPECT_THAT(ended.reason(), StartsWith("worker is stopping"));
  EXPECT_TRUE(ended.asked());
}
INSTANTIATE_TEST_SUITE_P(Ways, ToldToGoTest,
                         testing::Values("kill -TERM $$", "kill -INT $$", "kill -HUP $$", "exit 143",
                                         "exit 130", "exit 129", "exit 0"));

TEST_F(RunTest, WhileItsWorkerMayYetBeAskedToStopItsSlotsAreFree) {
  settings.afterthought = std::chrono::hours{5};
  auto& stopped = start("sleep 0; exit 0");
  EXPECT_TRUE(keeper.wait_for_slots());
  stopped.stop("worker is stopping");
  EXPECT_EQ(keeper.wait_for_end().back().ended().status(), RunEnded::STATUS_STOPPED);
}

TEST_F(RunTest, AProgramThatCanHaveHeededNobodyEndsAtOnce) {
  settings.afterthought = std::chrono::hours{5};
  settings.brief = std::chrono::hours{5};
  auto assign = shell_assignment(1, "");
  assign.clear_argv();
  assign.add_argv("true");
  start(assign);
  EXPECT_EQ(keeper.wait_for_end().back().ended().status(), RunEnded::STATUS_COMPLETED);
}

TEST_F(RunTest, OneThatTookLongerMayHaveHeededSomebodyAndUndoneThat) {
  settings.afterthought = std::chrono::hours{5};
  settings.brief = Milliseconds{-1};
  auto assign = shell_assignment(1, "");
  assign.clear_argv();
  assign.add_argv("true");
  auto& stopped = start(assign);
  EXPECT_TRUE(keeper.wait_for_slots());
  stopped.stop("worker is stopping");
  EXPECT_EQ(keeper.wait_for_end().back().ended().status(), RunEnded::STATUS_STOPPED);
}

TEST_F(RunTest, TheEndSaysHowLongItsProgramTook) {
  const auto ended = end_of("sleep 0.02");
  EXPECT_EQ(ended.status(), RunEnded::STATUS_COMPLETED);
  EXPECT_GE(ended.took_ms(), 20U);
}

TEST_F(RunTest, ATermFromOutsideThatTheWorkerDoesNotFollowIsAFailure) {
  const auto ended = end_of("kill -TERM $$");
  EXPECT_EQ(ended.status(), RunEnded::STATUS_FAILED);
  EXPECT_EQ(ended.reason(), "killed by SIGTERM (15)");
}

TEST_F(RunTest, ARunThatCompletesAndMatchedNothingHasFailedAndShowsTheNearestLine) {
  auto assign = shell_assignment(1, "echo 'Epoch 1: acc 0.5'");
  assign.set_config_json(
      R"json({"metrics":[{"pattern":["epoch (?<epoch>\\d+) acc=(?<acc>\\S+)"]}],"params":{},"seed":0})json");
  start(assign);
  const auto ended = keeper.wait_for_end().back().ended();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_FAILED);
  EXPECT_THAT(ended.reason(), AllOf(StartsWith("command.metrics: the pattern"),
                                    EndsWith("the line that looks nearest: 'Epoch 1: acc 0.5'")));
  EXPECT_FALSE(ended.retryable()) << "it would match nothing again";
}

TEST_F(RunTest, NumbersOfATableInTheRunsFolderAreMetrics) {
  auto assign = shell_assignment(1,
                                 R"(cd "$ABLATE_RUN_DIR"; mkdir out; echo epoch,acc > out/r.csv
                                    echo 1,0.5 >> out/r.csv; printf 2,0.75 >> out/r.csv)");
  assign.set_config_json(R"({"metrics":[{"file":"out/*.csv"}],"params":{},"seed":0})");
  start(assign);
  const auto batches = keeper.wait_for_end();
  EXPECT_EQ(batches.back().ended().status(), RunEnded::STATUS_COMPLETED) << batches.back().ended().reason();
  EXPECT_THAT(points(batches, "acc"), ElementsAre(Pair(1U, 0.5), Pair(2U, 0.75)));
}

TEST_F(RunTest, PointsOfATableComeWhileItIsWritten) {
  const auto go = folder.path() / "go";
  auto assign =
      shell_assignment(1, "cd \"$ABLATE_RUN_DIR\"; printf 'epoch,acc\\n1,0.5\\n' > r.csv; while [ ! -e " +
                              go.string() + " ]; do echo line; sleep 0.01; done");
  assign.set_config_json(R"({"metrics":[{"file":"r.csv"}],"params":{},"seed":0})");
  start(assign);
  EXPECT_TRUE(keeper.found_point("acc"));
  write_file(go, "");
  keeper.wait_for_end();
}

TEST_F(RunTest, SourcesThatNoSweepFileMakesFailTheRun) {
  auto assign = shell_assignment(1, "true");
  assign.set_config_json(R"({"metrics":[{"pattern":3}],"params":{},"seed":0})");
  start(assign);
  const auto ended = keeper.wait_for_end().back().ended();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_FAILED);
  EXPECT_THAT(ended.reason(), StartsWith("the trial's metrics cannot be read"));
  EXPECT_THAT(keeper.troubles(), IsEmpty()) << "the worker is well";
}

TEST_F(RunTest, TheNewestCheckpointThatAProgramWroteIsSaidWhenItIsStopped) {
  auto assign =
      shell_assignment(1, R"(mkdir "$ABLATE_RUN_DIR/out"; echo 7 > "$ABLATE_RUN_DIR/out/last.pth.tar"
                                       echo 'epoch 3 acc 0.5'; while :; do sleep 0.01; done)");
  assign.set_config_json(
      R"json({"checkpoint":"out/*.pth.tar","metrics":[{"pattern":["epoch (?<epoch>\\d+) acc (?<acc>\\S+)"]}],"seed":0})json");
  auto& stopped = start(assign);
  ASSERT_TRUE(keeper.heard("epoch 3"));
  stopped.stop("paused");
  const auto batches = keeper.wait_for_end();
  EXPECT_EQ(batches.back().ended().status(), RunEnded::STATUS_STOPPED);
  std::vector<std::pair<std::uint32_t, std::string>> checkpoints;
  for (const auto& batch : batches)
    for (const auto& checkpoint : batch.checkpoints())
      checkpoints.emplace_back(checkpoint.step(), checkpoint.path());
  EXPECT_THAT(checkpoints, ElementsAre(Pair(3U, (directory() / "out/last.pth.tar").string())));
}

TEST_F(RunTest, OfAProgramThatWasKilledTheCheckpointThatWasWholeIsSaidAndNotTheOneInTheMaking) {
  const auto go = folder.path() / "go";
  auto assign =
      shell_assignment(1, "cd \"$ABLATE_RUN_DIR\"; echo one > 1.pt; echo 'epoch 1 acc 0.5'; while [ ! -e " +
                              go.string() + " ]; do sleep 0.01; done; echo tw > 2.pt; kill -KILL $$");
  assign.set_config_json(
      R"json({"checkpoint":"*.pt","metrics":[{"pattern":["epoch (?<epoch>\\d+) acc (?<acc>\\S+)"]}],"seed":0})json");
  start(assign);
  const auto said = [](const auto& batches) {
    std::vector<std::string> names;
    for (const auto& batch : batches)
      for (const auto& checkpoint : batch.checkpoints())
        names.push_back(std::filesystem::path{checkpoint.path()}.filename());
    return names;
  };
  ASSERT_TRUE(keeper.heard_of_checkpoint());
  write_file(go, "");
  const auto batches = keeper.wait_for_end();
  EXPECT_EQ(batches.back().ended().status(), RunEnded::STATUS_FAILED);
  EXPECT_THAT(said(batches), ElementsAre("1.pt", "1.pt"));
}

TEST_F(RunTest, ARunThatWentOnAndLacksOneOfItsPlacesHasNotFailed) {
  auto assign = shell_assignment(1, "echo 'epoch 9 acc 0.5'");
  assign.set_config_json(
      R"json({"checkpoint":"*.pt","metrics":[{"pattern":["epoch (?<epoch>\\d+) acc (?<acc>\\S+)"]},
              {"pattern":["epoch (?<epoch>\\d+) loss (?<loss>\\S+)"]}],"seed":0})json");
  const auto file = settings.runs_root / "101/0/8.pt";
  std::filesystem::create_directories(file.parent_path());
  write_file(file, "weights");
  auto& checkpoint = *assign.add_checkpoints();
  checkpoint.set_run(7);
  checkpoint.set_step(8);
  checkpoint.set_host("here");
  checkpoint.set_path(file);
  start(assign);
  const auto batches = keeper.wait_for_end();
  EXPECT_EQ(batches.back().ended().status(), RunEnded::STATUS_COMPLETED) << batches.back().ended().reason();
  std::string log;
  for (const auto& batch : batches) log += batch.log();
  EXPECT_THAT(log, HasSubstr("[worker] command.metrics: the pattern"));
  EXPECT_THAT(log, HasSubstr("it went on from a checkpoint, so this fails nothing"));
}

}  // namespace
}  // namespace abl::agent
