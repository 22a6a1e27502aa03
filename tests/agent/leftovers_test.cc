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
  /// Whether its variables can be read: Linux lets the parent go on a moment before they can.
  static bool shows(const ChildProcess& program, const std::string& run_directory) {
    const std::string file = "/proc/" + std::to_string(program.pid()) + "/environ";
    return eventually([&] { return read_file(file).find(run_directory) != std::string::npos; });
  }
  static std::vector<std::string> lines_of(const std::string& record) {
    std::istringstream text{record};
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
  static std::string record_of(const std::vector<std::string>& lines) {
    std::string text;
    for (const auto& line : lines) text += line + "\n";
    return text;
  }
};

TEST_F(LeftoversTest, WithoutAProgramThereIsNothingToKill) { EXPECT_EQ(end_leftovers(""), 0); }

TEST_F(LeftoversTest, AProgramOfTheRunIsKilledAndAnotherRunsIsNot) {
  auto own = sleeper("/runs/7/1");
  auto other = sleeper("/runs/7/11");
  ASSERT_TRUE(shows(own, "/runs/7/1") && shows(other, "/runs/7/11"));
  EXPECT_EQ(end_leftovers(program_record("/runs/7/1", own.pid())), 1);
  EXPECT_EQ(own.wait().signal, SIGKILL);
  EXPECT_TRUE(alive(other.pid()));
}

TEST_F(LeftoversTest, AProgramWhoseGroupWasNotKeptYetIsFoundByItsFolder) {
  auto own = sleeper("/runs/7/1");
  ASSERT_TRUE(shows(own, "/runs/7/1"));
  EXPECT_EQ(end_leftovers(program_record("/runs/7/1", std::nullopt)), 1);
  EXPECT_EQ(own.wait().signal, SIGKILL);
}

TEST_F(LeftoversTest, ANumberThatWasGivenToAnotherProcessIsNotKilled) {
  const ChildProcess other{{.argv = {"env", "-i", "sleep", "1000"}}};
  auto lines = lines_of(program_record("/runs/7/1", other.pid()));
  ASSERT_EQ(lines.size(), 3U);
  std::istringstream leader{lines[2]};
  std::uint64_t pid = 0, session = 0, start = 0;
  leader >> pid >> session >> start;
  // as if the program had started before, and its number had been given again
  lines[2] = std::to_string(pid) + " " + std::to_string(session) + " " + std::to_string(start - 1);
  EXPECT_EQ(end_leftovers(record_of(lines)), 0);
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
  const std::string record = program_record("/runs/7/1", first);
  end_job(first);
  EXPECT_EQ(end_leftovers(record), 0);
  EXPECT_TRUE(alive(second));
  end_job(second);
}

TEST_F(LeftoversTest, ProcessesOfAnotherContainerAreNoneOfThese) {
  auto own = sleeper("/runs/7/1");
  auto lines = lines_of(program_record("/runs/7/1", own.pid()));
  lines[0] = lines[0].substr(0, lines[0].find(' ')) + " pid:[1]";
  EXPECT_EQ(end_leftovers(record_of(lines)), 0);
  EXPECT_TRUE(alive(own.pid()));
}

TEST_F(LeftoversTest, ProcessesOfAnEarlierStartOfTheMachineAreNoneOfThese) {
  auto own = sleeper("/runs/7/1");
  auto lines = lines_of(program_record("/runs/7/1", own.pid()));
  lines[0] = "00000000-0000-0000-0000-000000000000";
  EXPECT_EQ(end_leftovers(record_of(lines)), 0);
  EXPECT_TRUE(alive(own.pid()));
}

}  // namespace
}  // namespace abl::agent
