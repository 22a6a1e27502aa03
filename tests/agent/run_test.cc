// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/run.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/child_process.h"
#include "base/error.h"
#include "base/file.h"
#include "tests/agent/fixtures.h"
#include "worker/agent/leftovers.h"

namespace abl::agent {
namespace {

using ablate::v1::RunBatch;
using ablate::v1::RunEnded;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::StartsWith;

/// Keeps all batches; its disk is full, its data gone, or the scheduler far behind, when a test says so.
class Keeper final : public RunOwner {
 public:
  void append(std::uint32_t, const RunBatch& batch) override {
    const std::scoped_lock lock{mutex_};
    if (full_) throw Error{Code::kResourceExhausted, "cannot write spool: No space left on device"};
    batches_.push_back(batch);
    changed_.notify_all();
  }
  std::uint64_t backlog(std::uint32_t) override { return backlog_; }
  void starts(std::uint32_t, const std::filesystem::path& directory, std::optional<pid_t> group) override {
    const std::scoped_lock lock{mutex_};
    kept_ = {directory, group};
  }
  void troubled(const Trouble& trouble) override {
    const std::scoped_lock lock{mutex_};
    troubles_.push_back(trouble);
  }
  std::string fault(const ablate::v1::Assign&, Asked asked) override {
    const std::scoped_lock lock{mutex_};
    if (asked == Asked::kFailedFull && !fault_of_full_disk_.empty()) return fault_of_full_disk_;
    return asked == Asked::kBefore ? fault_at_start_ : fault_of_failure_;
  }
  void vacated(std::uint32_t) override {
    const std::scoped_lock lock{mutex_};
    vacated_ = true;
    changed_.notify_all();
  }
  void finished(std::uint32_t, std::optional<RunBatch> last) override {
    const std::scoped_lock lock{mutex_};
    if (last) batches_.push_back(std::move(*last));
    finished_ = true;
    changed_.notify_all();
  }
  void refused(std::uint32_t, const std::string& reason) override {
    const std::scoped_lock lock{mutex_};
    refusal_ = reason;
    finished_ = true;
    changed_.notify_all();
  }
  void disk_is_full() {
    const std::scoped_lock lock{mutex_};
    full_ = true;
  }
  void blame(const std::string& at_start, const std::string& of_failure) {
    const std::scoped_lock lock{mutex_};
    fault_at_start_ = at_start, fault_of_failure_ = of_failure;
  }
  void blame_a_full_disk(const std::string& why) {
    const std::scoped_lock lock{mutex_};
    fault_of_full_disk_ = why;
  }
  void set_backlog(std::uint64_t bytes) { backlog_ = bytes; }
  std::vector<Trouble> troubles() {
    const std::scoped_lock lock{mutex_};
    return troubles_;
  }
  std::string refusal() {
    const std::scoped_lock lock{mutex_};
    return refusal_;
  }
  std::pair<std::filesystem::path, std::optional<pid_t>> kept_program() {
    const std::scoped_lock lock{mutex_};
    return kept_;
  }
  std::size_t batches() {
    const std::scoped_lock lock{mutex_};
    return batches_.size();
  }
  std::vector<RunBatch> wait_for_end() {
    std::unique_lock lock{mutex_};
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [&] { return finished_; })) << "the run has not ended";
    return batches_;
  }
  bool wait_for_slots() {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, kPatience, [&] { return vacated_ || finished_; }) && !finished_;
  }
  bool heard(const std::string& log) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, kPatience,
                             [&] { return log_of(batches_).find(log) != std::string::npos; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<RunBatch> batches_;
  bool full_ = false, vacated_ = false, finished_ = false;
  std::atomic<std::uint64_t> backlog_ = 0;
  std::string fault_at_start_, fault_of_failure_, fault_of_full_disk_;
  std::vector<Trouble> troubles_;
  std::string refusal_;
  std::pair<std::filesystem::path, std::optional<pid_t>> kept_;
};

class RunTest : public testing::Test {
 protected:
  RunTest() {
    settings.runs_root = folder.path() / "runs";
    settings.host = "here";
  }
  agent::Run& start(ablate::v1::Assign assign) {
    return run.emplace(std::move(assign),
                       std::vector<Slot>{{.device = "cpu", .name = "", .threads = 2, .visible = {}}},
                       settings, keeper, clock, crew);
  }
  agent::Run& start(const std::string& script) { return start(shell_assignment(1, script)); }
  RunEnded end_of(const std::string& script) {
    start(script);
    return keeper.wait_for_end().back().ended();
  }
  /// Of another run, in a folder of its own.
  RunEnded end_alone(ablate::v1::Assign assign) {
    assign.set_attempt(static_cast<std::uint32_t>(++attempts));
    Keeper own;
    const agent::Run other{std::move(assign),
                           std::vector<Slot>{{.device = "cpu", .name = "", .threads = 2, .visible = {}}},
                           settings,
                           own,
                           clock,
                           crew};
    return own.wait_for_end().back().ended();
  }
  static std::string metric_line(int step, const std::string& value) {
    return fmt::format(R"(echo '{{"event":"metric","step":{},"values":{{"val/loss":{}}}}}'; )", step, value);
  }
  std::filesystem::path directory() const { return settings.runs_root / "101/1"; }
  /// Of a process that wrote its own id there.
  pid_t pid_in(const char* name) const { return std::stoi(read_file(directory() / name)); }

  TemporaryFolder folder;
  RunSettings settings;
  SystemClock clock;
  Keeper keeper;
  Crew crew;
  int attempts = 0;
  std::optional<agent::Run> run;
};

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
  EXPECT_EQ(keeper.batches(), 0U);
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

}  // namespace
}  // namespace abl::agent
