// SPDX-License-Identifier: Apache-2.0
//
// The program itself: its flags, its lock, its signals.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include "base/child_process.h"
#include "base/error.h"
#include "base/file.h"
#include "tests/agent/fake_scheduler.h"

namespace abl::agent {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string kWorker = std::string{ABLATE_BIN_DIR} + "/ablate-worker";

class WorkerTest : public testing::Test {
 protected:
  WorkerTest() {
    trainer = write_script(folder.path() / "trainer", R"(
      if [ "$1" = --version ]; then echo '{"version":"9","result_version":4}'; exit 0; fi
      if [ "$1" = data ]; then
        [ ! -e "$4/unknown" ] || { echo "ablate-trainer: data: $4 holds no data set" >&2; exit 2; }
        exit 0
      fi
      echo $$ > "$ABLATE_RUN_DIR/self"
      trap 'echo "{\"event\":\"end\",\"status\":\"stopped\"}"; exit 0' TERM
      echo '{"event":"metric","step":1,"values":{"val/top1":50}}'
      while :; do sleep 0.01; done)");
  }
  std::vector<std::string> argv(std::vector<std::string> more = {}) const {
    std::vector<std::string> all{kWorker,
                                 "--scheduler",
                                 scheduler.address(),
                                 "--home",
                                 folder.path() / "home",
                                 "--name",
                                 "w",
                                 "--slots",
                                 "1",
                                 "--threads",
                                 "1",
                                 "--trainer",
                                 trainer};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static ablate::v1::Assign assignment() {
    auto assign = shell_assignment(7, "");
    assign.clear_argv();
    assign.set_data("shapes");
    return assign;
  }
  /// Assigns a run. Returns: the process id of its trainer.
  pid_t start_run() {
    scheduler.assign(assignment());
    EXPECT_TRUE(eventually([&] { return !scheduler.batches(7).empty(); }));
    return std::stoi(read_file(folder.path() / "home/runs/107/1/self"));
  }

  TemporaryFolder folder;
  FakeScheduler scheduler{folder.path()};
  std::filesystem::path trainer;
};

TEST_F(WorkerTest, HelloCarriesTheTrainersResultVersionTheDataAndTheWeights) {
  const ChildProcess worker{{.argv = argv({"--data", "cifar10=" + folder.path().string(), "--weights",
                                           "regnet=" + trainer.string()})}};
  const auto hello = scheduler.hello();
  EXPECT_EQ(hello.name(), "w");
  EXPECT_EQ(hello.result_version(), 4U);
  EXPECT_FALSE(hello.allows_commands());
  EXPECT_THAT(hello.data(), ElementsAre("cifar10", "negative-shapes", "scenes", "shapes", "tinted-shapes"));
  EXPECT_THAT(hello.weights(), ElementsAre("regnet"));
}

TEST_F(WorkerTest, ATrainerIsAlsoFoundByTheEnvironment) {
  auto without_flag = argv();
  without_flag.erase(without_flag.end() - 2, without_flag.end());
  {
    const ChildProcess worker{{.argv = without_flag, .environment = {{"ABLATE_TRAINER", trainer.string()}}}};
    EXPECT_EQ(scheduler.hello().result_version(), 4U);
  }
  ChildProcess refused{{.argv = without_flag, .environment = {{"ABLATE_TRAINER", "/no/trainer"}}}};
  EXPECT_EQ(refused.wait().code, kExitUsage);
}

TEST_F(WorkerTest, ATrainerDiesWithAWorkerThatIsKilledAndTheNextOneEndsItsRun) {
  scheduler.acknowledge(false);
  ChildProcess worker{{.argv = argv()}};
  const pid_t trainer_process = start_run();
  ASSERT_TRUE(alive(trainer_process));
  ::kill(worker.pid(), SIGKILL);  // the worker alone, not its group
  EXPECT_TRUE(eventually([&] { return !alive(trainer_process); }));
  worker.wait();
  scheduler.forget();
  const ChildProcess next{{.argv = argv()}};
  const auto batches = scheduler.wait_for_end(7);
  EXPECT_EQ(points(batches, "val/top1").size(), 1U);
  EXPECT_EQ(batches.back().ended().reason(), "its worker was killed and started again");
  scheduler.acknowledge_run(7, batches.back().seq());
}

TEST_F(WorkerTest, WhatOnlyWaitedWhenItsWorkerWasKilledIsNotAmongTheRunsOfTheNext) {
  ChildProcess worker{{.argv = argv()}};
  start_run();
  auto waiting = assignment();
  waiting.set_run(8);
  waiting.set_trial(108);
  scheduler.assign(waiting);
  EXPECT_TRUE(scheduler.heard([](const auto& messages) {
    return messages.back().has_heartbeat() && messages.back().heartbeat().runs_size() == 2;
  }));
  ::kill(worker.pid(), SIGKILL);
  worker.wait();
  const ChildProcess next{{.argv = argv()}};
  EXPECT_THAT(scheduler.hello(2).runs(), ElementsAre(7U)) << "the scheduler has the other back at once";
}

TEST_F(WorkerTest, GoesOnWhenNobodyReadsWhatItSays) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ChildOptions options{.argv = argv()};
  options.stdout_fd = options.stderr_fd = ends[1];
  ::close(ends[0]);
  ChildProcess worker{options};
  ::close(ends[1]);
  start_run();
  worker.terminate();
  const auto ended = worker.wait(kPatience);
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->ok()) << ended->describe();
  EXPECT_EQ(scheduler.wait_for_end(7).back().ended().reason(), "worker is stopping");
}

class StoppedWorkerTest : public WorkerTest, public testing::WithParamInterface<int> {};

TEST_P(StoppedWorkerTest, StopsTheRunsSendsTheLastBatchesAndExitsWithZero) {
  ChildProcess worker{{.argv = argv()}};
  start_run();
  ::kill(worker.pid(), GetParam());
  const auto ended = worker.wait(kPatience);
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->ok()) << ended->describe();
  EXPECT_EQ(scheduler.wait_for_end(7).back().ended().reason(), "worker is stopping");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path() / "home/spool"));
}
INSTANTIATE_TEST_SUITE_P(Signals, StoppedWorkerTest, testing::Values(SIGTERM, SIGINT, SIGHUP));

TEST_F(WorkerTest, WhatATrainerStartedIsGoneBeforeTheNextWorkerTakesAnything) {
  write_script(trainer, R"(
      if [ "$1" = --version ]; then echo '{"version":"9","result_version":4}'; exit 0; fi
      echo $$ > "$ABLATE_RUN_DIR/self"
      sh -c 'sleep 1000; true' & echo $! > "$ABLATE_RUN_DIR/child"
      setsid sleep 1000 & echo $! > "$ABLATE_RUN_DIR/session"
      env -i /bin/sleep 1000 & echo $! > "$ABLATE_RUN_DIR/bare"
      echo '{"event":"metric","step":1,"values":{"val/top1":50}}'
      wait)");
  ChildProcess worker{{.argv = argv()}};
  start_run();
  std::vector<pid_t> left;
  for (const char* name : {"child", "session", "bare"})
    left.push_back(std::stoi(read_file(folder.path() / "home/runs/107/1" / name)));
  ::kill(worker.pid(), SIGKILL);
  worker.wait();
  for (const pid_t process : left) EXPECT_TRUE(alive(process)) << "the kernel ends the trainer alone";
  const ChildProcess next{{.argv = argv()}};
  scheduler.hello(2);
  for (const pid_t process : left) EXPECT_FALSE(alive(process));
}

TEST_F(WorkerTest, TwoWorkersWithOneHomeAreRefused) {
  const ChildProcess first{{.argv = argv()}};
  scheduler.hello();
  try {
    run_program(argv(), "", kPatience);
    FAIL() << "the second worker started";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("exit code 3"), HasSubstr((folder.path() / "home").string() +
                                                                        " is in use by another worker")));
  }
}

TEST_F(WorkerTest, WrongFlagsAreRefusedWithOneMessage) {
  const auto refusal = [&](std::vector<std::string> flags) -> std::string {
    try {
      run_program(argv(std::move(flags)), "", kPatience);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal({"--data", "cifar10"}),
              AllOf(HasSubstr("exit code 2"), HasSubstr("expected NAME=FOLDER")));
  EXPECT_THAT(refusal({"--data", "cifar10=/no/such/folder"}),
              AllOf(HasSubstr("exit code 2"), HasSubstr("/no/such/folder")));
  EXPECT_THAT(refusal({"--runs-root", "\xff"}), HasSubstr("not valid UTF-8"));
}

TEST_F(WorkerTest, DataOfNoKnownFormatAreRefusedUnlessCommandsMayReadThem) {
  const auto photos = folder.path() / "photos";
  write_text(photos / "unknown", "x");
  try {
    run_program(argv({"--data", "photos=" + photos.string()}), "", kPatience);
    FAIL() << "it started";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("exit code 2: ablate-worker: --data photos: " + photos.string() +
                                        " holds no data set"));
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "home"));
  const ChildProcess worker{{.argv = argv({"--allow-commands", "--data", "photos=" + photos.string()})}};
  EXPECT_THAT(scheduler.hello().data(),
              ElementsAre("negative-shapes", "photos", "scenes", "shapes", "tinted-shapes"));
}

TEST_F(WorkerTest, AnEmptyFolderMayBeMountedLater) {
  std::filesystem::create_directory(folder.path() / "empty");
  const ChildProcess worker{{.argv = argv({"--data", "photos=" + (folder.path() / "empty").string()})}};
  EXPECT_THAT(scheduler.hello().data(),
              ElementsAre("negative-shapes", "photos", "scenes", "shapes", "tinted-shapes"));
}

TEST_F(WorkerTest, ARefusedStartLeavesNothing) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--data", "cifar10=/no/such/folder"}, {"--runs-root", "/proc/runs"}}) {
    EXPECT_THROW(run_program(argv(flags), "", kPatience), Error);
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "home")) << flags[1];
  }
}

TEST_F(WorkerTest, HelpShowsAnExampleAndTheExitCodes) {
  const std::string help = run_program({kWorker, "--help"}, "", kPatience);
  EXPECT_THAT(help, AllOf(HasSubstr("Example:"), HasSubstr("Exit codes:"), HasSubstr("--allow-commands")));
}

TEST_F(WorkerTest, TheExampleCommandTrialReportsItsMetrics) {
  const ChildProcess worker{{.argv = argv({"--allow-commands"})}};
  auto assign = shell_assignment(9, "");
  assign.clear_argv();
  for (const std::string& argument :
       {std::string{"python3"}, std::string{ABLATE_SOURCE_DIR} + "/docs/examples/command_trial.py"})
    assign.add_argv(argument);
  assign.set_config_json(
      R"({"argv":["python3","command_trial.py"],"params":{"rate":0.1,"steps":5},"seed":3,"version":"1"})");
  scheduler.assign(assign);
  const auto batches = scheduler.wait_for_end(9);
  EXPECT_EQ(batches.back().ended().status(), ablate::v1::RunEnded::STATUS_COMPLETED)
      << batches.back().ended().reason();
  EXPECT_EQ(points(batches, "val/top1").size(), 5U);
}

}  // namespace
}  // namespace abl::agent
