// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/confinement.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "base/sha256.h"
#include "tests/agent/run_fixture.h"
#include "worker/agent/leftovers.h"

namespace abl::agent {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ConfinementTest : public RunTest {
 protected:
  std::string log_of_run(const std::string& script) {
    start(script);
    return log_of(keeper.wait_for_end());
  }
};

TEST_F(ConfinementTest, ACommandGainsNoPrivilegesAndLeavesNoCoreFile) {
  const std::string log = log_of_run("grep NoNewPrivs /proc/self/status; echo core $(ulimit -c)");
  EXPECT_THAT(log, AllOf(HasSubstr("NoNewPrivs:\t1"), HasSubstr("core 0\n")));
}

TEST_F(ConfinementTest, ARunThatMeetsALimitOfItsWorkerSaysWhichAndIsOneOfResources) {
  settings.confinement.open_files = 32;
  settings.confinement.file_size = 1 << 20;
  const auto files =
      end_alone(shell_assignment(1, "python3 -c 'f = [open(\"/dev/null\") for _ in range(100)]'"));
  EXPECT_EQ(files.failure(), ablate::v1::FAILURE_CLASS_RESOURCES) << files.reason();
  EXPECT_THAT(files.reason(), HasSubstr("may have 32 files open here (--run-open-files)"));
  const auto size = end_alone(shell_assignment(1, "head -c 3000000 /dev/zero > big"));
  EXPECT_EQ(size.failure(), ablate::v1::FAILURE_CLASS_RESOURCES) << size.reason();
  EXPECT_THAT(size.reason(), HasSubstr("files of up to 1 MiB here (--run-file-size)"));
}

TEST(RunUserTest, RootAndUsersThatAreNotThereAreRefused) {
  for (const auto& [name, why] :
       {std::pair{"root", "root may do everything"}, std::pair{"nobody-of-this-name", "no such user"}}) {
    try {
      find_run_user(name);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr(name), HasSubstr(why)));
    }
  }
}

class RunAsTest : public ConfinementTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can start programs as another user";
    ::chmod(folder.path().c_str(), 0711);
    std::filesystem::create_directory(settings.runs_root);
    settings.confinement.user = find_run_user("nobody");
    open_runs_root(settings.runs_root, *settings.confinement.user);
  }
  uid_t user() const { return settings.confinement.user->ids.user; }
  static struct stat look(const std::filesystem::path& path) {
    struct stat now {};
    ::stat(path.c_str(), &now);
    return now;
  }
};

TEST_F(RunAsTest, ACommandRunsAsItsUserInAFolderOfItsOwnThatIsTakenBackAtItsEnd) {
  const std::string log = log_of_run(
      "echo $(id -u) $(id -G) $HOME; echo again > /dev/stderr; cat $ABLATE_CONFIG; "
      "echo kept > $ABLATE_RUN_DIR/file && stat -c 'owner %u %a' $ABLATE_RUN_DIR");
  EXPECT_THAT(log,
              AllOf(HasSubstr(fmt::format("{0} {1} {2}\n", user(), settings.confinement.user->ids.group,
                                          settings.confinement.user->home)),
                    HasSubstr("again"), HasSubstr("params"), HasSubstr(fmt::format("owner {} 700", user()))));
  EXPECT_EQ(look(directory()).st_uid, 0U);
  EXPECT_EQ(look(directory()).st_mode & 0777, 0700U);
  EXPECT_EQ(read_file(directory() / "file"), "kept\n");
}

TEST_F(RunAsTest, ACommandGetsTheUsualVariablesAndNoSecretOnes) {
  const std::vector<std::pair<const char*, const char*>> variables{{"PYTHONPATH", "here"},
                                                                   {"LC_TIME", "C"},
                                                                   {"CONDA_PREFIX", "env"},
                                                                   {"CONDA_TOKEN", "hidden"},
                                                                   {"AWS_SECRET_ACCESS_KEY", "hidden"},
                                                                   {"SSH_AUTH_SOCK", "hidden"},
                                                                   {"ABLATE_TOKEN", "hidden"},
                                                                   {"SLURM_JOB_ID", "asked"},
                                                                   {"WANDB_API_KEY", "asked"}};
  for (const auto& [name, value] : variables) ::setenv(name, value, 1);
  settings.confinement.passed = {"SLURM_*", "WANDB_API_KEY"};
  const std::string log = log_of_run("env");
  for (const auto& [name, value] : variables) ::unsetenv(name);
  EXPECT_THAT(log, AllOf(HasSubstr("PYTHONPATH=here"), HasSubstr("LC_TIME=C"), HasSubstr("CONDA_PREFIX=env"),
                         HasSubstr("SLURM_JOB_ID=asked"), HasSubstr("WANDB_API_KEY=asked"),
                         HasSubstr("PATH="), HasSubstr("ABLATE_SEED=0"), Not(HasSubstr("hidden"))));
}

TEST_F(RunAsTest, ACommandReadsNothingOfItsWorkerAndNothingOfOtherRuns) {
  write_text(folder / "home/spool/1", "of the worker");
  ::chmod((folder / "home").c_str(), 0700);
  write_text(settings.runs_root / "7/1/checkpoint", "of another trial");
  ::chmod((settings.runs_root / "7").c_str(), 0700);
  ASSERT_EQ(end_alone(shell_assignment(1, "echo earlier > $ABLATE_RUN_DIR/file")).status(),
            RunEnded::STATUS_COMPLETED);
  Keeper own;
  auto assign =
      shell_assignment(1,
                       "cd ../../..; cat home/spool/1; cat runs/7/1/checkpoint; cat runs/101/1/file; "
                       "echo broken > runs/101/1/file; ls runs; cat /etc/shadow; echo end");
  assign.set_attempt(2);
  const agent::Run other{
      assign, {{.device = "cpu", .name = "", .threads = 2, .visible = {}}}, settings, own, clock, crew};
  const std::string log = log_of(own.wait_for_end());
  EXPECT_THAT(log, AllOf(HasSubstr("Permission denied"), HasSubstr("end\n"), Not(HasSubstr("of the worker")),
                         Not(HasSubstr("of another")), Not(HasSubstr("earlier")), Not(HasSubstr("root:"))));
  EXPECT_EQ(read_file(directory() / "file"), "earlier\n");
}

TEST_F(RunAsTest, ACommandReadsTheCheckpointThatItGoesOnFromAndNoOther) {
  const auto write = [&](const char* folder, const char* text) {
    write_text(settings.runs_root / folder / "c", text);
    ::chmod((settings.runs_root / folder).c_str(), 0700);
    return settings.runs_root / folder / "c";
  };
  const auto resume = [&](std::uint32_t attempt, const std::filesystem::path& file) {
    auto assign = shell_assignment(1, "cat $ABLATE_RESUME");
    assign.set_attempt(attempt);
    auto& checkpoint = *assign.add_checkpoints();
    checkpoint.set_host("here");
    checkpoint.set_path(file);
    Keeper own;
    const agent::Run other{
        assign, {{.device = "cpu", .name = "", .threads = 2, .visible = {}}}, settings, own, clock, crew};
    return log_of(own.wait_for_end());
  };
  const auto own = write("101/1", "its own weights"), others = write("7/1", "those of another trial");
  EXPECT_THAT(resume(2, own), HasSubstr("its own weights"));
  EXPECT_EQ(look(own.parent_path()).st_mode & 0777, 0700U);
  EXPECT_THAT(resume(3, others), AllOf(HasSubstr("Permission denied"), Not(HasSubstr("those of"))));
}

TEST_F(RunAsTest, AfterItsWorkersDeathWhatARunWentOnFromIsClosedToo) {
  const auto trial = settings.runs_root / "101";
  const auto mode = [&](const char* attempt) { return look(trial / attempt).st_mode & 0777; };
  for (const char* attempt : {"1", "2", "notes"}) {
    write_text(trial / attempt / "c", "weights");
    ::chmod((trial / attempt).c_str(), 0711);
  }
  ASSERT_EQ(::chown((trial / "2").c_str(), user(), static_cast<gid_t>(-1)), 0);
  close_attempts(trial / "2");
  EXPECT_EQ(mode("1"), 0700U) << "the second went on from it";
  EXPECT_EQ(mode("2"), 0700U);
  EXPECT_EQ(look(trial / "2").st_uid, ::geteuid());
  EXPECT_EQ(mode("notes"), 0711U) << "it is no attempt";

  ::chmod((trial / "1").c_str(), 0711);
  write_text(trial / "3" / "c", "under way on another machine");
  ::chmod((trial / "3").c_str(), 0755);
  close_attempts(trial / "2");
  EXPECT_EQ(mode("1"), 0711U) << "the third may go on from it, and closes it";
  EXPECT_EQ(mode("3"), 0755U);
}

TEST_F(RunAsTest, WhatACommandLeavesIsKilledAlsoWithoutItsEnvironmentItsGroupAndItsParent) {
  adopt_orphans();
  const std::string script = "env -i setsid sh -c 'echo $$ > " + (directory() / "self").string() +
                             "; sleep 1000' & while [ ! -s $ABLATE_RUN_DIR/self ]; do sleep 0.01; done";
  EXPECT_EQ(end_of(script).status(), RunEnded::STATUS_COMPLETED);
  EXPECT_FALSE(alive(pid_in("self")));
}

TEST_F(RunAsTest, ACommandOfAnotherUserIsStoppedAsOthersAre) {
  auto& stopped = start("trap 'echo told; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(keeper.heard("ready"));
  stopped.stop("paused");
  const auto batches = keeper.wait_for_end();
  EXPECT_EQ(batches.back().ended().status(), RunEnded::STATUS_STOPPED);
  EXPECT_THAT(log_of(batches), HasSubstr("told"));
}

TEST_F(RunAsTest, AForkBombMeetsTheLimitOfProcesses) {
  settings.confinement.bounds.processes = 30;
  const auto ended = end_of("for i in $(seq 100); do sleep 1000 & done; wait");
  EXPECT_EQ(ended.failure(), ablate::v1::FAILURE_CLASS_RESOURCES) << ended.reason();
  EXPECT_THAT(ended.reason(), HasSubstr("may have 30 processes and threads here (--run-processes)"));
}

}  // namespace
}  // namespace abl::agent
