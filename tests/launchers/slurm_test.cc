// SPDX-License-Identifier: Apache-2.0
#include "launchers/slurm.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "tests/temporary_folder.h"

namespace abl::launchers {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const std::map<std::string, std::string> kNames{{"ablate-ab12-h100", "h100"}, {"ablate-ab12-cpu", "cpu"}};

TEST(Squeue, IsReadWithItsOddities) {
  const auto pilots = parse_squeue(
      "11|PENDING|0:00|ablate-ab12-h100||Resources\n"
      "12|RUNNING|1-02:03:04|ablate-ab12-h100|node7|None\n"
      "13|CANCELLED|0:07|ablate-ab12-cpu|node1|None\n"
      "14|NODE_FAIL|10:00|ablate-ab12-cpu|node1|NodeFail\n"
      "15|TIMEOUT|1:00|ablate-ab12-cpu|node1|TimeLimit\n"
      "16|PREEMPTED|1:00|ablate-ab12-cpu|node1|None\n"
      "17|FAILED|0:01|ablate-ab12-cpu|node1|NonZeroExitCode\n"
      "18|PENDING|0:00|ablate-ab12-cpu||launch failed | requeued held\n"
      "19|SOMETHING_NEW|0:09|ablate-ab12-cpu|node1|None\n",
      kNames);
  ASSERT_THAT(pilots, SizeIs(9));
  EXPECT_EQ(pilots[0].state, PilotState::kWaiting);
  EXPECT_EQ(pilots[0].said, "Resources");
  EXPECT_EQ(pilots[0].queue, "h100");
  EXPECT_EQ(pilots[1].state, PilotState::kRunning);
  EXPECT_EQ(pilots[1].ran, std::chrono::seconds{93784});
  EXPECT_EQ(pilots[1].machine, "node7");
  EXPECT_EQ(pilots[1].worker(), "h100-12");
  for (int i = 2; i < 7; ++i) EXPECT_EQ(pilots[static_cast<std::size_t>(i)].state, PilotState::kEnded) << i;
  EXPECT_FALSE(pilots[3].failed) << "a node's end is not the pilot's failure";
  EXPECT_TRUE(pilots[6].failed);
  EXPECT_EQ(pilots[7].said, "launch failed | requeued held");
  EXPECT_EQ(pilots[8].state, PilotState::kRunning)
      << "a state of a newer Slurm is no reason to think that it is gone";
}

TEST(Squeue, NamesNoJobOfOthers) {
  EXPECT_THAT(
      parse_squeue("11|RUNNING|0:01|ablate-ffff-h100|n|None\n12|RUNNING|0:01|train|n|None\n"
                   "13_4|RUNNING|0:01|ablate-ab12-h100|n|None\n13_[5-9]|PENDING|0:00|ablate-ab12-h100||None\n"
                   "-7|RUNNING|0:01|ablate-ab12-h100|n|None\nslurm_load_jobs error\n\n||||||\n",
                   kNames),
      IsEmpty());
}

TEST(Sacct, TellsHowJobsEnded) {
  const auto ended =
      parse_sacct("11|CANCELLED by 0|62\n12|RUNNING|5\n13|OUT_OF_MEMORY|9\n13.batch|FAILED|9\nodd\n");
  ASSERT_THAT(ended, SizeIs(2));
  EXPECT_EQ(ended.at("11").said, "CANCELLED by 0");
  EXPECT_FALSE(ended.at("11").failed);
  EXPECT_EQ(ended.at("11").ran, std::chrono::seconds{62});
  EXPECT_TRUE(ended.at("13").failed);
}

TEST(Sbatch, NamesTheJob) {
  EXPECT_EQ(parse_job_id("4711\n"), "4711");
  EXPECT_EQ(parse_job_id("Welcome to the cluster\n4711;north\n"), "4711");
  EXPECT_THROW(parse_job_id("Submitted"), Error);
}

/// Programs in place of Slurm's, first on the PATH, that note how they were called.
class Slurm : public testing::Test {
 protected:
  Slurm() {
    path_ = std::getenv("PATH");
    ::setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1);
    for (const char* name : {"sbatch", "squeue", "scancel", "sacct"}) says(name, "");
  }
  ~Slurm() override { ::setenv("PATH", path_.c_str(), 1); }

  void says(const std::string& program, const std::string& answer, int exit_code = 0,
            const std::string& error = "") {
    write_file(folder_.path() / (program + ".answer"), answer);
    write_file(folder_.path() / (program + ".error"), error);
    const fs::path file = folder_.path() / program;
    write_file(file, "#!/bin/sh\nhere=$(dirname \"$0\")\nfor word in " + program +
                         " \"$@\"; do printf '%s\\n' \"$word\"; done >>\"$here/calls\"\ncat \"$here/" +
                         program + ".error\" >&2\ncat \"$here/" + program + ".answer\"\nexit " +
                         std::to_string(exit_code) + "\n");
    fs::permissions(file, fs::perms::owner_all);
  }
  std::string calls() {
    const fs::path file = folder_.path() / "calls";
    if (!fs::exists(file)) return {};
    std::string text = read_file(file);
    fs::remove(file);
    return text;
  }
  SlurmLauncher launcher() {
    return {{.store_id = "ab12", .scheduler = "head:7071", .script = folder_.path() / "pilot.sh"}, {queue()}};
  }
  static QueueConfig queue() {
    return {.name = "h100",
            .time_limit = std::chrono::minutes{90},
            .gpus = 2,
            .slots = 2,
            .labels = {{"gpu", "h100; rm -rf $HOME"}},
            .program = "/opt/ablate worker",
            .home = "/shared/workers",
            .partition = "gpu"};
  }
  TemporaryFolder folder_;
  std::string path_;
};

TEST_F(Slurm, GetsEveryWordAsAnArgumentOfItsOwn) {
  says("sbatch", "4711\n");
  SlurmLauncher launcher = this->launcher();
  EXPECT_EQ(launcher.submit(queue(), {}, {}), "4711");
  const std::string words = calls();
  for (const char* word :
       {"\n--parsable\n", "\n--job-name=ablate-ab12-h100\n", "\n--time=90\n", "\n--gres=gpu:2\n",
        "\n--signal=B:TERM@60\n", "\n--partition=gpu\n", "\n/opt/ablate worker\n",
        "\ngpu=h100; rm -rf $HOME\n", "\nhead:7071\n", "\n--time-limit\n5400s\n"})
    EXPECT_THAT(words, HasSubstr(word));
  EXPECT_THAT(read_file(folder_.path() / "pilot.sh"), Not(HasSubstr("rm -rf")));
}

TEST_F(Slurm, HandsAPassOverInFilesThatTheirOwnerAloneReads) {
  says("sbatch", "4711\n");
  SlurmLauncher launcher = this->launcher();
  QueueConfig queue = this->queue();
  queue.home = (folder_.path() / "workers").string();
  launcher.submit(queue, Pass{.id = "0a1b2c3d4e5f", .token = "abl_secret", .authorities = "PEM"}, {});
  const fs::path file = queue.home + "/.join/0a1b2c3d4e5f", authorities = queue.home + "/.join/ca.crt";
  EXPECT_EQ(read_file(file), "abl_secret\n");
  EXPECT_EQ(read_file(authorities), "PEM");
  for (const fs::path& each : {file, authorities})
    EXPECT_EQ(fs::status(each).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(fs::status(file.parent_path()).permissions(), fs::perms::owner_all);
  const std::string words = calls();
  EXPECT_THAT(words, HasSubstr("\n--ca\n" + authorities.string() + "\n--join-token-file\n" + file.string()));
  EXPECT_THAT(words, Not(HasSubstr("secret")));
  EXPECT_THAT(read_file(folder_.path() / "pilot.sh"), Not(HasSubstr("secret")));

  fs::create_directories(fs::path{queue.home} / "h100-12" / "spool");
  fs::create_directories(fs::path{queue.home} / "runs");
  launcher.remove(
      queue, {.passes = {"0a1b2c3d4e5f", "absent"}, .workers = {"h100-12", "runs", "h100-/../runs"}}, {});
  EXPECT_FALSE(fs::exists(file));
  EXPECT_FALSE(fs::exists(fs::path{queue.home} / "h100-12"));
  EXPECT_TRUE(fs::exists(fs::path{queue.home} / "runs")) << "which is no worker's";
}

TEST_F(Slurm, TellsARefusalFromAControllerThatIsDown) {
  SlurmLauncher launcher = this->launcher();
  says("sbatch", "", 1, "sbatch: error: Batch job submission failed: Invalid partition name specified\n");
  try {
    launcher.submit(queue(), {}, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.code(), Code::kUnavailable);
    EXPECT_THAT(error.what(), HasSubstr("Invalid partition name"));
  }
  says("sbatch", "", 1,
       "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)\n");
  try {
    launcher.submit(queue(), {}, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnavailable);
  }
}

TEST_F(Slurm, DoesNotThinkPilotsGoneWhenTheControllerIsDown) {
  SlurmLauncher launcher = this->launcher();
  says("squeue", "12|RUNNING|0:10|ablate-ab12-h100|node7|None\n");
  EXPECT_THAT(launcher.list({}), SizeIs(1));
  says("squeue", "", 1, "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n");
  try {
    launcher.list({});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnavailable);
  }
  says("squeue", "12|RUNNING|0:20|ablate-ab12-h100|node7|None\n");
  EXPECT_EQ(launcher.list({}).at(0).state, PilotState::kRunning);
}

TEST_F(Slurm, AsksOnceForAllPilotsAndOnceHowThoseThatAreGoneHaveEnded) {
  SlurmLauncher launcher = this->launcher();
  says("squeue", "12|RUNNING|0:10|ablate-ab12-h100|node7|None\n13|PENDING|0:00|ablate-ab12-h100||Priority\n");
  launcher.list({});
  EXPECT_THAT(calls(), Not(HasSubstr("sacct")));
  says("squeue", "");
  says("sacct", "12|NODE_FAIL|11\n");
  const auto pilots = launcher.list({});
  ASSERT_THAT(pilots, SizeIs(2));
  EXPECT_EQ(pilots[0].said, "NODE_FAIL");
  EXPECT_EQ(pilots[1].said, "squeue does not know it any more");
  EXPECT_EQ(pilots[1].state, PilotState::kEnded);
  EXPECT_THAT(calls(), HasSubstr("--jobs=12,13"));
  EXPECT_THAT(launcher.list({}), IsEmpty()) << "said once";
}

TEST_F(Slurm, AsksARunningPilotToEndAndCancelsOneThatWaits) {
  SlurmLauncher launcher = this->launcher();
  launcher.cancel(
      {{.id = "12", .queue = "h100", .state = PilotState::kRunning}, {.id = "13", .queue = "h100"}}, {});
  const std::string words = calls();
  EXPECT_THAT(words, HasSubstr("--batch\n--signal=TERM\n12\n"));
  EXPECT_THAT(words, HasSubstr("--user=" + std::to_string(::getuid()) + "\n13\n"));
}

TEST_F(Slurm, CountsAPilotThatIsGoneAsEnded) {
  SlurmLauncher launcher = this->launcher();
  says("scancel", "", 1, "scancel: error: Kill job error on job id 99: Invalid job id specified\n");
  EXPECT_NO_THROW(launcher.cancel({{.id = "99", .queue = "h100"}}, {}));
  says("scancel", "", 1, "scancel: error: Unable to contact slurm controller (connect failure)\n");
  EXPECT_THROW(launcher.cancel({{.id = "98", .queue = "h100"}}, {}), Error);
}

}  // namespace
}  // namespace abl::launchers
