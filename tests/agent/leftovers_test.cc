// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/leftovers.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>

#include "base/child_process.h"
#include "base/file.h"
#include "tests/agent/fixtures.h"

namespace abl::agent {
namespace {

class LeftoversTest : public testing::Test {
 protected:
  /// A program as a run starts it, or one of another run.
  ChildProcess sleeper(const std::string& run_directory) {
    return ChildProcess{{.argv = {"sleep", "1000"}, .environment = {{"ABLATE_RUN_DIR", run_directory}}}};
  }
  /// The lines of what is kept.
  std::vector<std::string> kept() const {
    std::istringstream text{read_file(folder / "program")};
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
  void keep(const std::vector<std::string>& lines) const {
    std::string text;
    for (const auto& line : lines) text += line + "\n";
    write_text(folder / "program", text);
  }

  TemporaryFolder folder;
};

TEST_F(LeftoversTest, WithoutAProgramThereIsNothingToKill) { EXPECT_EQ(end_leftovers(folder.path()), 0); }

TEST_F(LeftoversTest, AProgramOfTheRunIsKilledAndAnotherRunsIsNot) {
  auto own = sleeper("/runs/7/1");
  auto other = sleeper("/runs/7/11");
  keep_program(folder.path(), "/runs/7/1", own.pid());
  EXPECT_EQ(end_leftovers(folder.path()), 1);
  EXPECT_EQ(own.wait().signal, SIGKILL);
  EXPECT_TRUE(alive(other.pid()));
}

TEST_F(LeftoversTest, AProgramWhoseGroupWasNotKeptYetIsFoundByItsFolder) {
  keep_program(folder.path(), "/runs/7/1", std::nullopt);
  auto own = sleeper("/runs/7/1");
  EXPECT_EQ(end_leftovers(folder.path()), 1);
  EXPECT_EQ(own.wait().signal, SIGKILL);
}

TEST_F(LeftoversTest, ANumberThatWasGivenToAnotherProcessIsNotKilled) {
  const ChildProcess other{{.argv = {"env", "-i", "sleep", "1000"}}};
  keep_program(folder.path(), "/runs/7/1", other.pid());
  auto lines = kept();
  ASSERT_EQ(lines.size(), 3U);
  std::istringstream leader{lines[2]};
  std::uint64_t pid = 0, session = 0, start = 0;
  leader >> pid >> session >> start;
  lines[2] = std::to_string(pid) + " " + std::to_string(session) + " " + std::to_string(start - 1);
  keep(lines);  // as if the program had started before, and its number had been given again
  EXPECT_EQ(end_leftovers(folder.path()), 0);
  EXPECT_TRUE(alive(other.pid()));
}

/// A job of this process, as of a shell's: without a variable of ours, in a group (0: its own).
pid_t start_job(pid_t group) {
  const pid_t job = ::fork();
  if (job == 0) {
    ::setpgid(0, group);
    char* const nothing[] = {nullptr};
    ::execle("/bin/sleep", "sleep", "1000", nullptr, nothing);
    ::_exit(127);
  }
  EXPECT_TRUE(eventually([&] { return ::getpgid(job) == (group == 0 ? job : group); }));
  return job;
}

void end_job(pid_t job) {
  ::kill(job, SIGKILL);
  ::waitpid(job, nullptr, 0);
}

TEST_F(LeftoversTest, AJobOfALivingShellInAGroupOfTheSameNumberIsNotKilled) {
  // the group's first process has gone, as that of a pipeline has; this one, its shell, lives
  const pid_t first = start_job(0), second = start_job(first);
  keep_program(folder.path(), "/runs/7/1", first);
  end_job(first);
  EXPECT_EQ(end_leftovers(folder.path()), 0);
  EXPECT_TRUE(alive(second));
  end_job(second);
}

TEST_F(LeftoversTest, ProcessesOfAnotherContainerAreNoneOfThese) {
  auto own = sleeper("/runs/7/1");
  keep_program(folder.path(), "/runs/7/1", own.pid());
  auto lines = kept();
  lines[0] = lines[0].substr(0, lines[0].find(' ')) + " pid:[1]";
  keep(lines);
  EXPECT_EQ(end_leftovers(folder.path()), 0);
  EXPECT_TRUE(alive(own.pid()));
}

TEST_F(LeftoversTest, ProcessesOfAnEarlierStartOfTheMachineAreNoneOfThese) {
  auto own = sleeper("/runs/7/1");
  keep_program(folder.path(), "/runs/7/1", own.pid());
  auto lines = kept();
  lines[0] = "00000000-0000-0000-0000-000000000000";
  keep(lines);
  EXPECT_EQ(end_leftovers(folder.path()), 0);
  EXPECT_TRUE(alive(own.pid()));
}

}  // namespace
}  // namespace abl::agent
