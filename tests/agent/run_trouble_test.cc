// SPDX-License-Identifier: Apache-2.0
// What is the trouble of a worker, or of its run; what a run leaves behind, and how much it may say.
#include <fmt/format.h>
#include <signal.h>

#include "base/child_process.h"
#include "tests/agent/run_fixture.h"
#include "worker/agent/leftovers.h"
#include "worker/agent/run.h"

namespace abl::agent {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

TEST_F(RunTest, AFullDiskThatATrainerMeetsIsTheWorkersTroubleWithWhatItNeeds) {
  const auto ended = end_of(
      R"(echo '{"event":"end","status":"failed","reason":"cannot write c: No space left on device","fault":"disk","needed_bytes":1900000}'
         exit 3)");
  EXPECT_EQ(ended.status(), RunEnded::STATUS_LOST);
  EXPECT_TRUE(ended.worker_trouble());
  EXPECT_EQ(ended.reason(), "worker unhealthy: cannot write c: No space left on device");
  const auto troubles = keeper.troubles();
  ASSERT_EQ(troubles.size(), 1U);
  EXPECT_EQ(troubles[0].reason, "cannot write c: No space left on device");
  EXPECT_EQ(troubles[0].room, 1'900'000U);
  EXPECT_FALSE(troubles[0].gpus);
}

TEST_F(RunTest, ADeviceThatIsLostIsTheWorkersTroubleAndToBeTried) {
  const auto ended = end_of(
      R"(echo '{"event":"end","status":"failed","reason":"CUDA error: no device","fault":"device"}'; exit 1)");
  EXPECT_EQ(ended.status(), RunEnded::STATUS_LOST);
  ASSERT_EQ(keeper.troubles().size(), 1U);
  EXPECT_TRUE(keeper.troubles()[0].gpus);
  EXPECT_FALSE(keeper.troubles()[0].room);
}

constexpr const char* kDataFault =
    R"(echo '{"event":"end","status":"failed","reason":"data: /d holds no data set","fault":"data"}'; exit 2)";

TEST_F(RunTest, DataThatCannotBeOpenedAreTheWorkersTroubleOfThatNameAlone) {
  auto assign = shell_assignment(1, kDataFault);
  assign.set_data("photos");
  start(assign);
  const auto ended = keeper.wait_for_end().back().ended();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_LOST);
  EXPECT_TRUE(ended.worker_trouble());
  EXPECT_EQ(ended.reason(), "worker unhealthy: data: /d holds no data set");
  ASSERT_EQ(keeper.troubles().size(), 1U);
  EXPECT_EQ(keeper.troubles()[0].data, "photos");
  EXPECT_FALSE(keeper.troubles()[0].trainer) << "what a command reads no trainer knows";
}

TEST_F(RunTest, AFaultOfDataThatItWasNotGivenIsItsOwn) {
  EXPECT_EQ(end_of(kDataFault).status(), RunEnded::STATUS_FAILED);
  EXPECT_THAT(keeper.troubles(), IsEmpty());
}

TEST_F(RunTest, ACommandThatFoundNoRoomHasTheDiskLookedAt) {
  keeper.blame_a_full_disk("cannot write in /runs: 3.0 MiB are free, and 64.0 MiB are needed");
  const auto ended = end_of("echo 'OSError: [Errno 28] No space left on device' >&2; exit 1");
  EXPECT_EQ(ended.status(), RunEnded::STATUS_LOST);
  EXPECT_THAT(ended.reason(), AllOf(HasSubstr("3.0 MiB are free"), HasSubstr("[Errno 28]")));
}

TEST_F(RunTest, ACommandThatFailedOtherwiseOnANearlyFullDiskHasFailed) {
  keeper.blame_a_full_disk("cannot write in /runs: 3.0 MiB are free, and 64.0 MiB are needed");
  EXPECT_EQ(end_of("echo 'ValueError' >&2; exit 1").status(), RunEnded::STATUS_FAILED);
}

class BrokenTrainerTest : public RunTest {
 protected:
  RunEnded end_of_trainer(const std::string& script) {
    settings.trainer = write_script(folder.path() / "trainer", script);
    auto assign = shell_assignment(1, "");
    assign.clear_argv();
    start(assign);
    return keeper.wait_for_end().back().ended();
  }
};

TEST_F(BrokenTrainerTest, WhatItCannotOpenItHasToOpenAgain) {
  settings.trainer = write_script(folder.path() / "trainer", kDataFault);
  auto assign = shell_assignment(1, "");
  assign.clear_argv();
  assign.set_data("photos");
  start(assign);
  EXPECT_EQ(keeper.wait_for_end().back().ended().status(), RunEnded::STATUS_LOST);
  ASSERT_EQ(keeper.troubles().size(), 1U);
  EXPECT_EQ(keeper.troubles()[0].data, "photos");
  EXPECT_TRUE(keeper.troubles()[0].trainer);
}

TEST_F(BrokenTrainerTest, WhatItsLoaderRefusesIsTheWorkersTrouble) {
  const auto ended =
      end_of_trainer("echo 'trainer: error while loading shared libraries: libx.so' >&2; exit 127");
  EXPECT_EQ(ended.status(), RunEnded::STATUS_LOST);
  EXPECT_TRUE(ended.worker_trouble());
  EXPECT_THAT(ended.reason(), AllOf(StartsWith("worker unhealthy: " + settings.trainer.string() +
                                               " does not start: exit code 127"),
                                    HasSubstr("error while loading shared libraries: libx.so")));
  ASSERT_EQ(keeper.troubles().size(), 1U);
  EXPECT_TRUE(keeper.troubles()[0].trainer);
}

constexpr const char* kOtherFile =
    R"(echo '{"event":"end","status":"failed","reason":"weights w: its SHA-256 is a0","fault":"file"}'; exit 2)";

TEST_F(BrokenTrainerTest, AFileThatWasAnotherIsTheWorkersTroubleThoughItIsTheRightOneAgain) {
  const auto ended = end_of_trainer(kOtherFile);
  EXPECT_EQ(ended.status(), RunEnded::STATUS_LOST);
  EXPECT_TRUE(ended.worker_trouble());
  EXPECT_EQ(ended.reason(), "worker unhealthy: weights w: its SHA-256 is a0");
  EXPECT_THAT(keeper.troubles(), IsEmpty()) << "other runs need other files";
}

TEST_F(BrokenTrainerTest, ACommandThatSaysSoHasFailed) {
  EXPECT_EQ(end_of(kOtherFile).status(), RunEnded::STATUS_FAILED);
}

TEST_F(BrokenTrainerTest, OneThatHasSaidSomethingHasFailed) {
  const auto ended = end_of_trainer(R"(echo '{"event":"log","text":"begins"}'; exit 127)");
  EXPECT_EQ(ended.status(), RunEnded::STATUS_FAILED);
  EXPECT_THAT(keeper.troubles(), IsEmpty());
}

TEST_F(BrokenTrainerTest, ACommandThatEndsWith127HasFailed) {
  const auto ended = end_of("no-such-program-here");
  EXPECT_EQ(ended.status(), RunEnded::STATUS_FAILED);
  EXPECT_EQ(ended.exit_code(), 127);
  EXPECT_THAT(keeper.troubles(), IsEmpty());
}

/// In the end a run's slots are free: nothing that it has started is there any more, wherever it went.
class DaemonTest : public RunTest {
 protected:
  DaemonTest() { adopt_orphans(); }
  static constexpr const char* kDaemons =
      R"(setsid sleep 1000 & echo $! > daemon
         setsid sh -c 'env -i /bin/sleep 1000 & echo $! > bare; wait' &
         while [ ! -s bare ]; do sleep 0.01; done; echo ready; )";
  void expect_all_gone() {
    for (const char* name : {"daemon", "bare"}) EXPECT_FALSE(alive(pid_in(name))) << name;
  }
};

TEST_F(DaemonTest, GoesWithARunThatIsStopped) {
  auto& stopped = start(std::string{kDaemons} + "exec sleep 1000");
  ASSERT_TRUE(keeper.heard("ready"));
  ASSERT_TRUE(alive(pid_in("daemon")));
  stopped.stop("cancelled");
  keeper.wait_for_end();
  expect_all_gone();
}

TEST_F(DaemonTest, GoesWithARunThatIsKilled) {
  auto& killed = start(std::string{kDaemons} + "exec sleep 1000");
  ASSERT_TRUE(keeper.heard("ready"));
  killed.kill();
  keeper.wait_for_end();
  expect_all_gone();
}

TEST_F(DaemonTest, GoesWithARunThatHasCompletedAndItsParentIsGone) {
  EXPECT_EQ(end_of(std::string{kDaemons} + "exit 0").status(), RunEnded::STATUS_COMPLETED);
  expect_all_gone();
}

TEST_F(DaemonTest, OfAnotherRunStays) {
  ChildProcess other{{.argv = {"sleep", "1000"}, .environment = {{"ABLATE_RUN_DIR", "/runs/another"}}}};
  EXPECT_EQ(end_of("exit 0").status(), RunEnded::STATUS_COMPLETED);
  EXPECT_TRUE(alive(other.pid()));
}

TEST_F(RunTest, ATrainerThatDoesNotStartIsTheWorkersTrouble) {
  auto assign = shell_assignment(1, "");
  assign.clear_argv();
  settings.trainer = folder.path() / "no-trainer";
  start(assign);
  const auto ended = keeper.wait_for_end().back().ended();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_LOST);
  EXPECT_TRUE(ended.worker_trouble());
  EXPECT_THAT(ended.reason(), HasSubstr("cannot start " + settings.trainer.string()));
  ASSERT_EQ(keeper.troubles().size(), 1U);
  EXPECT_TRUE(keeper.troubles()[0].trainer);
}

TEST_F(RunTest, WhereTheDataAreGoneNothingIsStarted) {
  keeper.blame("data set 'x' not found", "");
  const auto ended = end_of("exit 0");
  EXPECT_EQ(ended.status(), RunEnded::STATUS_LOST);
  EXPECT_EQ(ended.reason(), "worker unhealthy: data set 'x' not found");
  EXPECT_FALSE(std::filesystem::exists(directory()));
}

TEST_F(RunTest, AFailureThatIsTheWorkersFaultIsNotTheTrials) {
  keeper.blame("", "cannot write in /x: No space left on device");
  const auto ended = end_of("echo 'cannot save' >&2; exit 3");
  EXPECT_EQ(ended.status(), RunEnded::STATUS_LOST);
  EXPECT_TRUE(ended.worker_trouble());
  EXPECT_EQ(ended.reason(),
            "worker unhealthy: cannot write in /x: No space left on device (exit code 3; last output: "
            "cannot save)");
}

TEST_F(RunTest, WhatHasCompletedIsCompletedWhateverTheWorkersFault) {
  keeper.blame("", "cannot write in /x: No space left on device");
  EXPECT_EQ(end_of(R"(echo '{"event":"end","status":"completed"}')").status(), RunEnded::STATUS_COMPLETED);
}

TEST_F(RunTest, ItsProgramIsKeptToBeFoundAgain) {
  start("echo $$ > self; echo ready; exec sleep 1000");
  ASSERT_TRUE(keeper.heard("ready"));
  EXPECT_EQ(keeper.kept_program(), std::pair(directory(), std::optional{pid_in("self")}));
}

TEST_F(RunTest, AboveABacklogTheProgramHasToWaitAndNothingOfItIsLost) {
  settings.spool_limit = 1000;
  keeper.set_backlog(1000);
  start(R"(head -c 300000 /dev/zero | tr '\0' x; echo; echo '{"event":"metric","step":1,"values":{"a":1}}'
           touch said; echo '{"event":"end","status":"completed"}')");
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(directory() / "config.json"); }));
  std::this_thread::sleep_for(std::chrono::milliseconds{300});
  EXPECT_LE(keeper.batches(), 1U) << "the first says that the program has started; nothing of what it prints";
  EXPECT_FALSE(std::filesystem::exists(directory() / "said")) << "its pipe holds less than it has to say";
  keeper.set_backlog(999);
  const auto batches = keeper.wait_for_end();
  EXPECT_EQ(log_of(batches).size(), 300'001U);
  EXPECT_EQ(points(batches, "a").size(), 1U);
  EXPECT_EQ(batches.back().ended().status(), RunEnded::STATUS_COMPLETED);
}

TEST_F(RunTest, AProgramThatHasToWaitMayStillSayItsLastWords) {
  settings.spool_limit = 1000;
  keeper.set_backlog(1000);
  auto& stopped = start(R"(trap 'echo "{\"event\":\"end\",\"status\":\"stopped\"}"; exit 0' TERM
                           touch ready; while :; do sleep 0.01; done)");
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(directory() / "ready"); }));
  stopped.stop("paused");
  EXPECT_EQ(keeper.wait_for_end().back().ended().reason(), "paused");
}

TEST_F(RunTest, ALogAboveItsLimitKeepsItsHeadItsTailAndEveryPoint) {
  settings.log_limit = 100'000;
  start(R"(i=0; while [ $i -lt 30000 ]; do echo "this is line $i"; i=$((i+1)); done
           seq -f '{"event":"metric","step":%.0f,"values":{"a":1}}' 5000; echo the last line
           echo '{"event":"end","status":"completed"}')");
  const auto batches = keeper.wait_for_end();
  const std::string log = log_of(batches);
  EXPECT_LT(log.size(), 101'000U);
  EXPECT_THAT(log, AllOf(StartsWith("this is line 0\nthis is line 1\n"), EndsWith("\nthe last line\n"),
                         HasSubstr("\nthis is line 29999\n"), HasSubstr(" of the log were left out here\n")));
  EXPECT_EQ(points(batches, "a").size(), 5000U);
}

TEST_F(RunTest, AFullDiskLosesTheRunWithThatReasonAndNothingOfWhatItSaid) {
  start("echo first; while [ ! -e go ]; do sleep 0.01; done; echo second; exec sleep 1000");
  ASSERT_TRUE(keeper.heard("first"));
  keeper.disk_is_full();
  write_text(directory() / "go", "");
  const auto batches = keeper.wait_for_end();
  EXPECT_EQ(log_of(batches), "first\nsecond\n");
  EXPECT_EQ(batches.back().ended().status(), RunEnded::STATUS_LOST);
  EXPECT_EQ(batches.back().ended().reason(), "worker unhealthy: cannot write spool: No space left on device");
  EXPECT_TRUE(batches.back().ended().worker_trouble());
  EXPECT_EQ(keeper.troubles().at(0).reason, "cannot write spool: No space left on device");
}

TEST_F(RunTest, MegabytesOfOutputArriveWhole) {
  start(R"(head -c 3000000 /dev/zero | tr '\0' x; echo; echo '{"event":"metric","step":1,"values":{"a":1}}';
           echo '{"event":"end","status":"completed"}')");
  const auto batches = keeper.wait_for_end();
  EXPECT_EQ(log_of(batches).size(), 3'000'001U);
  EXPECT_EQ(points(batches, "a").size(), 1U);
  for (const auto& batch : batches)
    EXPECT_LT(batch.ByteSizeLong(), 4U << 20) << "gRPC takes no larger message";
}

TEST_F(RunTest, ReasonsAreValidUtf8WhateverTheProgramPrints) {
  const auto ended = end_of(R"(printf 'caf\351\n'; exit 1)");
  EXPECT_EQ(ended.reason(), "exit code 1; last output: caf\uFFFD");
}

TEST_F(RunTest, ARunsRootThatCannotBeWrittenIsTheWorkersTrouble) {
  write_text(folder.path() / "runs", "a file");
  const auto ended = end_of("exit 0");
  EXPECT_EQ(ended.status(), RunEnded::STATUS_LOST);
  EXPECT_THAT(ended.reason(),
              HasSubstr("cannot create the folder " + settings.runs_root.string() + ": Not a directory"));
  EXPECT_EQ(keeper.troubles().size(), 1U);
}

/// A run whose only checkpoint is on another machine, and in the depot.
class FetchingRunTest : public RunTest {
 protected:
  RunEnded end_of_fetching() {
    auto assign = shell_assignment(1, "echo from=$ABLATE_RESUME.");
    auto& checkpoint = *assign.add_checkpoints();
    checkpoint.set_step(900);
    checkpoint.set_host("elsewhere");
    checkpoint.set_path("/elsewhere/last.pth.tar");
    checkpoint.set_sha256("abc");
    checkpoint.set_depot_bytes(7);
    start(assign);
    return keeper.wait_for_end().back().ended();
  }
  std::string log() { return log_of(keeper.wait_for_end()); }
};

TEST_F(FetchingRunTest, GoesOnFromWhatItFetchedAndKeepsNoCopy) {
  EXPECT_EQ(end_of_fetching().status(), RunEnded::STATUS_COMPLETED);
  EXPECT_THAT(log(), HasSubstr("from=" + (directory() / "fetched.tar").string() + "."))
      << "programs tell by the ending how to read it";
  EXPECT_FALSE(std::filesystem::exists(directory() / "fetched.tar"));
}

TEST_F(FetchingRunTest, BeginsAgainWhereTheDepotHasNoGoodCopy) {
  keeper.fail_fetches("it has another SHA-256");
  EXPECT_EQ(end_of_fetching().status(), RunEnded::STATUS_COMPLETED);
  EXPECT_THAT(log(), HasSubstr("from=."));
  EXPECT_THAT(log(), HasSubstr("restarting from the beginning"));
}

TEST_F(FetchingRunTest, IsLostAndNotBegunAgainWhereTheDepotDoesNotAnswer) {
  keeper.fail_fetches("", Code::kUnavailable);
  const RunEnded ended = end_of_fetching();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_LOST);
  EXPECT_THAT(ended.reason(), HasSubstr("was not fetched: the depot is away"));
  EXPECT_FALSE(ended.worker_trouble());
  EXPECT_THAT(keeper.troubles(), IsEmpty()) << "it is the scheduler's";
  EXPECT_THAT(log(), Not(HasSubstr("from="))) << "900 steps would be trained again";
  EXPECT_FALSE(std::filesystem::exists(directory() / "fetched.tar"));
}

TEST_F(FetchingRunTest, WithoutRoomForItsCheckpointIsTheWorkersTroubleWithWhatItNeeds) {
  keeper.fail_fetches("", Code::kResourceExhausted);
  const RunEnded ended = end_of_fetching();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_LOST);
  EXPECT_TRUE(ended.worker_trouble());
  ASSERT_EQ(keeper.troubles().size(), 1u);
  EXPECT_EQ(keeper.troubles()[0].room, 7u);
  EXPECT_THAT(log(), Not(HasSubstr("from=")));
}

}  // namespace
}  // namespace abl::agent
