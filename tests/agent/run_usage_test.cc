// SPDX-License-Identifier: Apache-2.0
// What real processes take, as it is counted while they run and after they have ended.
#include "worker/agent/processes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <vector>

#include "tests/agent/fixtures.h"

namespace abl::agent {
namespace {

constexpr std::size_t kMiB = 1 << 20;
/// Looks are of so few ticks that they are counted, not timed.
const double kTick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));

/// A process that leads a group of its own, and does `what` until it is killed.
class Child {
 public:
  explicit Child(const std::function<void()>& what) : id_{::fork()} {
    if (id_ == 0) {
      ::setpgid(0, 0);
      what();
      for (;;) ::pause();
    }
    ::setpgid(id_, id_);
  }
  ~Child() {
    ::kill(-id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t id() const { return id_; }
  std::uint64_t ticks() const { return look_at(id_).value_or(Process{}).ticks; }

 private:
  const pid_t id_;
};

/// Until this process has had so much of a processor.
void spin(std::uint64_t ticks) {
  volatile std::uint64_t number = 0;
  while (look_at(::getpid()).value_or(Process{}).ticks < ticks)
    for (int i = 0; i < 1'000'000; ++i) number = number + 1;
}

class RunUsageTest : public testing::Test {
 protected:
  std::optional<Usage> look(RunUsage& usage) { return usage.look(ProcessTable{all_processes(), folders}); }
  FoldersOfChildren folders;
  TemporaryFolder folder;
};

TEST_F(RunUsageTest, AProcessThatSpinsUsesAProcessor) {
  const Child child{[] { spin(UINT64_MAX); }};
  RunUsage usage{child.id(), folder.path()};
  look(usage);
  const std::uint64_t before = child.ticks();
  ASSERT_TRUE(eventually([&] { return child.ticks() >= before + 20; }));
  const auto seen = look(usage);
  ASSERT_TRUE(seen && seen->cpu_seconds);
  EXPECT_GE(*seen->cpu_seconds, 20 * kTick);
  EXPECT_LE(*seen->cpu_seconds, static_cast<double>(child.ticks()) * kTick);
}

TEST_F(RunUsageTest, MemoryIsWhatIsTouched) {
  constexpr std::size_t size = 64 * kMiB;
  const Child child{[] {
    auto* memory = static_cast<char*>(
        ::mmap(nullptr, 4 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::raise(SIGSTOP);
    for (std::size_t at = 0; at < size; at += 4096) memory[at] = 1;
  }};
  RunUsage usage{child.id(), folder.path()};
  ASSERT_TRUE(eventually([&] { return look_at(child.id()).value_or(Process{}).state == 'T'; }));
  // A child begins with what its parent has touched: of a sanitizer's build that is more than `size`.
  const std::uint64_t before = look(usage).value_or(Usage{}).memory_bytes;
  ::kill(child.id(), SIGCONT);
  EXPECT_TRUE(
      eventually([&] { return look(usage).value_or(Usage{}).memory_bytes >= before + size - 4 * kMiB; }));
  EXPECT_LT(look(usage)->memory_bytes, before + 2 * size)
      << "what is reserved and not touched is not counted";
}

TEST_F(RunUsageTest, WhatIsWrittenIsWhatTheSystemCounts) {
  const std::string file = "/var/tmp/ablate-run-usage-" + std::to_string(::getpid());
  const Child child{[&] {
    const int out = ::open(file.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
    const std::vector<char> bytes(4 * kMiB);
    if (::write(out, bytes.data(), bytes.size()) < 0 || ::fsync(out) != 0) ::_exit(1);
    ::unlink(file.c_str());
    ::raise(SIGSTOP);
  }};
  RunUsage usage{child.id(), folder.path()};
  ASSERT_TRUE(eventually([&] { return look_at(child.id()).value_or(Process{}).state == 'T'; }));
  bool denied = false;
  const auto counted = disk_traffic_of(child.id(), denied);
  if (!counted) GTEST_SKIP() << "this system does not say what processes write";
  const auto seen = look(usage);
  ASSERT_TRUE(seen && seen->disk);
  EXPECT_EQ(seen->disk->written, counted->written);
  EXPECT_TRUE(counted->written == 0 || counted->written >= 4 * kMiB) << "0: a disk that is in memory";
  EXPECT_EQ(look(usage)->disk->written, 0U) << "each byte once";
}

TEST_F(RunUsageTest, WhatEndsBetweenTwoLooksIsCountedOnce) {
  const Child child{[] {
    for (int i = 0; i < 3; ++i) {
      if (const pid_t grandchild = ::fork(); grandchild == 0) {
        spin(12);
        ::_exit(0);
      } else {
        ::waitpid(grandchild, nullptr, 0);
      }
    }
    ::raise(SIGSTOP);
  }};
  RunUsage usage{child.id(), folder.path()};
  double sum = 0;
  const auto has_stopped = [&] { return look_at(child.id()).value_or(Process{}).state == 'T'; };
  while (!has_stopped()) sum += look(usage).value_or(Usage{.cpu_seconds = 0}).cpu_seconds.value_or(0);
  sum += look(usage)->cpu_seconds.value_or(0);
  EXPECT_GE(child.ticks(), 36U);
  const double all = static_cast<double>(child.ticks()) * kTick;
  EXPECT_GE(sum, all - 1e-9) << "of all looks together what the program and all that it has reaped had";
  EXPECT_LE(sum, all + 14 * kTick) << "of a child, at most, that ended in the middle of a look";
}

TEST_F(RunUsageTest, AStoppedProcessIsThereAndTakesNothing) {
  const Child child{[] { ::raise(SIGSTOP); }};
  RunUsage usage{child.id(), folder.path()};
  ASSERT_TRUE(eventually([&] { return look_at(child.id()).value_or(Process{}).state == 'T'; }));
  look(usage);
  const auto seen = look(usage);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->cpu_seconds, 0);
  EXPECT_GT(seen->memory_bytes, 0U);
}

TEST_F(RunUsageTest, AnEndedProgramHasNoSample) {
  std::optional<RunUsage> usage;
  {
    const Child child{[] {}};
    usage.emplace(child.id(), folder.path());
    EXPECT_TRUE(look(*usage));
  }
  EXPECT_FALSE(look(*usage));
}

TEST_F(RunUsageTest, AnotherProcessThatGetsTheNumberIsNotTheRuns) {
  const Child child{[] {}};
  RunUsage usage{child.id(), folder.path()};
  std::vector<Process> all = all_processes();
  for (Process& process : all)
    if (process.id == child.id()) process.start += 1000;
  EXPECT_FALSE(usage.look(ProcessTable{all, folders}));
  EXPECT_TRUE(look(usage));
}

/// A table that was written down: 10 leads the run.
class MadeUpTest : public testing::Test {
 protected:
  std::optional<Usage> look(RunUsage& usage, std::vector<Process> all) {
    return usage.look(ProcessTable{std::move(all), folders});
  }
  static Process process(pid_t id, pid_t parent, std::uint64_t ticks, std::uint64_t start = 1) {
    return {
        .id = id, .parent = parent, .group = id, .session = id, .state = 'S', .start = start, .ticks = ticks};
  }
  FoldersOfChildren folders;
};

TEST_F(MadeUpTest, WhatNobodyOfTheRunReapsLosesNothingOfTheOthers) {
  const Child child{[] {}};
  const Process leader = look_at(child.id()).value();
  RunUsage usage{child.id(), "/nowhere"};
  const auto with_ticks = [&](std::uint64_t ticks) {
    Process changed = leader;
    changed.ticks = ticks;
    return changed;
  };
  constexpr pid_t kBelow = 4'000'001, kOrphan = 4'000'002;
  EXPECT_NEAR(*look(usage, {with_ticks(5), process(kBelow, child.id(), 7), process(kOrphan, kBelow, 100)})
                   ->cpu_seconds,
              112 * kTick, 1e-9);
  // kBelow has ended and was reaped, with 9 ticks in all; what it had started has ended as an orphan
  EXPECT_NEAR(*look(usage, {with_ticks(5 + 9 + 3)})->cpu_seconds, 0, 1e-9)
      << "never below 0: what the orphan had may be in its parent's";
  EXPECT_NEAR(*look(usage, {with_ticks(17 + 4)})->cpu_seconds, 0, 1e-9) << "it may come with the next look";
  EXPECT_NEAR(*look(usage, {with_ticks(21 + 4)})->cpu_seconds, 4 * kTick, 1e-9) << "and not later";
}

TEST_F(MadeUpTest, WhatIsReapedAfterItsParentWasLookedAtIsCountedOnce) {
  const Child child{[] {}};
  Process leader = look_at(child.id()).value();
  leader.ticks = 5;
  RunUsage usage{child.id(), "/nowhere"};
  look(usage, {leader, process(4'000'001, child.id(), 100)});
  EXPECT_NEAR(*look(usage, {leader})->cpu_seconds, 0, 1e-9);
  leader.ticks = 5 + 103;
  EXPECT_NEAR(*look(usage, {leader})->cpu_seconds, 3 * kTick, 1e-9);
}

TEST_F(MadeUpTest, ANumberThatIsGivenAgainBelowTheProgramCountsFromItsStart) {
  const Child child{[] {}};
  const Process leader = look_at(child.id()).value();
  RunUsage usage{child.id(), "/nowhere"};
  constexpr pid_t kBelow = 4'000'001;
  look(usage, {leader, process(kBelow, child.id(), 50, /*start=*/1)});
  Process after = leader;
  after.ticks += 60;  // it has reaped the first
  EXPECT_NEAR(*look(usage, {after, process(kBelow, child.id(), 20, /*start=*/2)})->cpu_seconds, 30 * kTick,
              1e-9);
}

TEST_F(RunUsageTest, TrafficThatMayNotBeLookedAtIsAbsentAndNot0) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const Child child{[] {}};  // root's
  const pid_t other = ::fork();
  if (other == 0) {
    if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
    bool denied = false;
    const bool has = disk_traffic_of(child.id(), denied).has_value();
    RunUsage usage{child.id(), "/nowhere"};
    FoldersOfChildren none;
    const auto seen = usage.look(ProcessTable{all_processes(), none});
    ::_exit(!has && denied && seen && !seen->disk && seen->cpu_seconds ? 0 : 1);
  }
  int status = 0;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace abl::agent
