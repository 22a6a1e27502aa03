// SPDX-License-Identifier: Apache-2.0
#include "base/child_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "base/error.h"

namespace abl {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// A pipe whose write end a child gets; `line` waits for what it says, `rest` for its end and that of all who
/// hold the pipe.
class Ear {
 public:
  Ear() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) ADD_FAILURE() << "no pipe";
  }
  ~Ear() {
    stop_writing();
    ::close(ends_[0]);
  }
  int mouth() const { return ends_[1]; }
  void stop_writing() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }
  std::string line() {
    std::string text;
    for (char c; ::read(ends_[0], &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }
  std::string rest() {
    stop_writing();
    std::string text;
    for (char c; ::read(ends_[0], &c, 1) == 1;) text += c;
    return text;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

ChildOptions shell(const std::string& script, const Ear& ear) {
  ChildOptions options;
  options.argv = {"sh", "-c", script};
  options.stdout_fd = ear.mouth();
  options.grace = 200ms;
  return options;
}
bool exists(pid_t pid) { return ::kill(pid, 0) == 0; }

TEST(ChildProcessTest, ExitCodeAndSignalAreTold) {
  Ear ear;
  ChildProcess code{shell("exit 3", ear)};
  EXPECT_EQ(code.wait().describe(), "exit code 3");
  EXPECT_FALSE(code.wait().ok()) << "an end can be asked for again";
  ChildProcess killed{shell("kill -9 $$", ear)};
  EXPECT_EQ(killed.wait().describe(), "killed by SIGKILL (9)");
  ChildProcess fine{shell("exit 0", ear)};
  EXPECT_TRUE(fine.wait().ok());
}

TEST(ChildProcessTest, PollNeverWaits) {
  Ear ear;
  ChildProcess child{shell("sleep 1000", ear)};
  EXPECT_FALSE(child.poll());
  EXPECT_FALSE(child.wait(1ms));
  child.kill();
  EXPECT_EQ(child.wait().signal, SIGKILL);
}

TEST(ChildProcessTest, EnvironmentFolderAndInputAreAsGiven) {
  Ear ear;
  auto options = shell("echo $GIVEN; pwd; cat; echo end", ear);
  options.environment = {{"GIVEN", "value with spaces"}};
  options.working_directory = "/";
  ChildProcess child{options};
  EXPECT_EQ(ear.line(), "value with spaces");
  EXPECT_EQ(ear.line(), "/");
  EXPECT_EQ(ear.line(), "end") << "stdin is empty";
}

TEST(ChildProcessTest, NoDescriptorIsInheritedButTheThreeOfEveryProgram) {
  Ear ear;
  const int stray = ::open("/dev/null", O_RDONLY);  // without O_CLOEXEC, as our own parent may leave one
  const int high = ::fcntl(stray, F_DUPFD, 700);
  ASSERT_GE(high, 700);
  {
    ChildProcess child{
        shell("for n in $(seq 3 1000); do [ -e /proc/$$/fd/$n ] && echo $n; done; echo end", ear)};
    EXPECT_EQ(ear.line(), "end");
  }
  ::close(stray);
  ::close(high);
}

TEST(ChildProcessTest, ProgramThatCannotBeStartedIsNamed) {
  ChildOptions options;
  options.argv = {"no-such-program-anywhere"};
  try {
    ChildProcess child{options};
    FAIL() << "it started";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kNotFound);
    EXPECT_THAT(error.what(), HasSubstr("no-such-program-anywhere: No such file"));
  }
  options.argv = {"/etc/passwd"};
  EXPECT_THROW(ChildProcess{options}, Error);
}

TEST(ChildProcessTest, DestructorAsksFirstSoThatAProgramCanTidyUp) {
  Ear ear;
  {
    auto options = shell("trap 'echo tidied; exit 0' TERM; echo ready; while :; do sleep 0.01; done", ear);
    options.grace = 60s;
    ChildProcess child{options};
    EXPECT_EQ(ear.line(), "ready");
  }
  EXPECT_EQ(ear.rest(), "tidied\n");
}

TEST(ChildProcessTest, DestructorInsistsAndLeavesNoZombie) {
  Ear ear;
  pid_t pid = 0;
  {
    ChildProcess child{shell("trap '' TERM; echo ready; while :; do sleep 0.01; done", ear)};
    EXPECT_EQ(ear.line(), "ready");
    pid = child.pid();
    EXPECT_TRUE(exists(pid));
  }
  EXPECT_FALSE(exists(pid)) << "killed and reaped";
}

TEST(ChildProcessTest, GrandchildrenAreKilledWithTheirParent) {
  Ear ear;
  {
    ChildProcess child{shell("sh -c 'trap \"\" TERM; echo ready; while :; do sleep 0.01; done' & wait", ear)};
    EXPECT_EQ(ear.line(), "ready");
  }
  EXPECT_EQ(ear.rest(), "") << "the pipe closes only when the grandchild is gone too";
}

TEST(ChildProcessTest, GrandchildrenLeftBehindByAProgramThatEndedAreKilled) {
  Ear ear;
  ChildProcess child{shell("sleep 1000 & echo started; exit 0", ear)};
  EXPECT_EQ(ear.line(), "started");
  EXPECT_TRUE(child.wait().ok());
  EXPECT_EQ(ear.rest(), "");
}

TEST(ChildProcessTest, ChildDiesWithTheThreadThatStartedIt) {
  Ear ear;
  std::optional<ChildProcess> child;
  std::thread{[&] { child.emplace(shell("echo ready; exec sleep 1000", ear)); }}.join();
  EXPECT_EQ(child->wait().signal, SIGKILL);
}

TEST(ChildProcessTest, ItsEndCanBeWaitedForWithOtherDescriptors) {
  Ear ear;
  ChildProcess child{shell("exec sleep 1000", ear)};
  if (child.end_descriptor() < 0) GTEST_SKIP() << "this kernel has no pidfd_open";
  pollfd end{child.end_descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 0), 0);
  child.kill();
  EXPECT_EQ(::poll(&end, 1, 60'000), 1);
  EXPECT_TRUE(child.poll()) << "what the descriptor says the end can be asked for";
}

TEST(ChildProcessTest, AProgramThatDealsWithNoSignalAndNoChildHeedsNone) {
  ChildProcess plain{{.argv = {"true"}}};
  EXPECT_TRUE(plain.wait().unheeding);
  ChildProcess failed{{.argv = {"false"}}};
  EXPECT_FALSE(failed.wait().unheeding) << "an exit code is said of success alone";
  for (const std::vector<std::string>& argv :
       {std::vector<std::string>{"sh", "-c", "trap 'exit 0' TERM; :"},
        {"sh", "-c", "trap '' HUP; :"},
        {"sh", "-c", "sleep 0; :"},
        {"python3", "-c", "import signal\nsignal.signal(signal.SIGTERM, lambda *_: None)"},
        {"python3", "-c", "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])"}}) {
    ChildProcess child{{.argv = argv}};
    const ChildExit end = child.wait();
    EXPECT_TRUE(end.ok()) << argv[2];
    EXPECT_FALSE(end.unheeding) << argv[2];
  }
}

TEST(ChildProcessTest, OnlyWhatNoChildProcessHasStartedMayBeAnOrphan) {
  ChildProcess own{{.argv = {"sleep", "1000"}}};
  EXPECT_FALSE(ChildProcess::may_have_orphans());
  const pid_t orphan = ::fork();
  if (orphan == 0) ::_exit(0);
  EXPECT_TRUE(ChildProcess::may_have_orphans());
  ::waitpid(orphan, nullptr, 0);
  EXPECT_FALSE(ChildProcess::may_have_orphans());
}

TEST(ChildProcessTest, ManyThreadsMayStartProgramsWhileOrphansAreReaped) {
  std::jthread reaper{[](const std::stop_token& stop) {
    while (!stop.stop_requested())
      for (pid_t pid = ::getpid(); pid < ::getpid() + 200; ++pid) ChildProcess::reap_orphan(pid);
  }};
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([] {
      for (int i = 0; i < 50; ++i) {
        ChildProcess child{{.argv = {"sh", "-c", "exit 5"}}};
        EXPECT_EQ(child.wait().code, 5) << "nobody else has taken its end";
      }
    });
}

TEST(RunProgramTest, LargeInputAndOutputPassThrough) {
  const std::string text(3'000'000, 'x');
  EXPECT_EQ(run_program({"cat"}, text, 60s), text);
}

TEST(RunProgramTest, ProgramThatDoesNotReadItsInputIsNoTrouble) {
  EXPECT_EQ(run_program({"echo", "done"}, std::string(3'000'000, 'x'), 60s), "done\n");
}

TEST(RunProgramTest, FailureCarriesTheEndOfItsStderr) {
  try {
    run_program({"sh", "-c", "echo out; echo 'the reason' >&2; exit 4"}, "", 60s);
    FAIL() << "it did not throw";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "sh ended with exit code 4: the reason");
  }
}

TEST(RunProgramTest, AnswerDoesNotWaitForWhatTheProgramLeavesBehind) {
  EXPECT_EQ(run_program({"sh", "-c", "sleep 1000 & echo done"}, "", 60s), "done\n");
  EXPECT_EQ(run_program({"sh", "-c", "setsid sleep 3 & echo done"}, "", 60s), "done\n");  // not in its group
}

TEST(RunProgramTest, ProgramThatGivesNoAnswerIsKilled) {
  try {
    run_program({"sleep", "1000"}, "", 50ms);
    FAIL() << "it did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kDeadlineExceeded);
    EXPECT_THAT(error.what(), HasSubstr("sleep gave no answer within 50 ms"));
  }
}

TEST(ChildProcessTest, ReapingOrphansTakesTheEndOfNoOther) {
  ChildProcess own{{.argv = {"sh", "-c", "exit 7"}}};
  const pid_t orphan = ::fork();
  if (orphan == 0) ::_exit(0);
  for (const pid_t pid : {own.pid(), orphan}) {
    siginfo_t ended{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT), 0);
    ChildProcess::reap_orphan(pid);
  }
  EXPECT_EQ(::waitpid(orphan, nullptr, WNOHANG), -1) << "nothing is left of it";
  EXPECT_EQ(own.wait().code, 7);
}

}  // namespace
}  // namespace abl
