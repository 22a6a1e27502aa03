// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/run_group.h"

#include <unistd.h>

#include "tests/agent/run_fixture.h"

namespace abl::agent {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A folder with the files that the kernel has in one of cgroup v2: they take what is written to them and do
/// nothing. With the kernel: tests/end_to_end/confined.py.
class RunGroupTest : public RunTest {
 protected:
  RunGroupTest() {
    write_text(tree / "cgroup.controllers", "cpu memory pids\n");
    write_text(tree / "worker/cgroup.kill", "");
  }
  void expect_run(int run, const std::string& memory_events = "oom 0\noom_kill 0\n",
                  const std::string& pids_events = "max 0\n") const {
    for (const char* name : {"cgroup.procs", "cgroup.kill", "memory.max", "memory.swap.max", "pids.max"})
      write_text(of(run) / name, "");
    write_text(of(run) / "cgroup.events", "populated 0\nfrozen 0\n");
    write_text(of(run) / "memory.events", memory_events);
    write_text(of(run) / "pids.events", pids_events);
  }
  std::filesystem::path of(int run) const { return tree / fmt::format("run-{}", run); }
  std::filesystem::path tree = folder.path() / "tree";
};

TEST_F(RunGroupTest, TheWorkerMakesRoomForItsRunsAndEndsWhatAnEarlierOneLeft) {
  expect_run(3);
  const RunGroups groups{tree};
  EXPECT_EQ(read_file(tree / "worker/cgroup.procs"), "0");
  EXPECT_EQ(read_file(tree / "cgroup.subtree_control"), "+pids");  // the last one written
  EXPECT_TRUE(groups.bounds_memory());
  EXPECT_TRUE(groups.bounds_processes());
  EXPECT_EQ(read_file(of(3) / "cgroup.kill"), "1");
}

TEST_F(RunGroupTest, ATreeWithoutAControllerHasGroupsWithoutThatBound) {
  write_text(tree / "cgroup.controllers", "cpuset perf_event\n");
  const RunGroups groups{tree};
  EXPECT_FALSE(groups.bounds_memory());
  EXPECT_FALSE(groups.bounds_processes());
  expect_run(4);
  const RunGroup group{groups, 4, {.memory = 1 << 20, .processes = 5}};
  EXPECT_EQ(read_file(of(4) / "memory.max"), "");
}

TEST_F(RunGroupTest, AFolderThatIsNoGroupIsRefusedByName) {
  std::filesystem::remove(tree / "worker/cgroup.kill");
  try {
    const RunGroups groups{tree};
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("there is no " + (tree / "worker/cgroup.kill").string()));
  }
}

TEST_F(RunGroupTest, ARunHasItsBoundsItsEntranceAndItsEnd) {
  const RunGroups groups{tree};
  expect_run(5, "oom 1\noom_kill 1\n", "max 3\n");
  RunGroup group{groups, 5, {.memory = 64 << 20, .processes = 30}};
  EXPECT_EQ(read_file(of(5) / "memory.max"), "67108864");
  EXPECT_EQ(read_file(of(5) / "memory.swap.max"), "0");
  EXPECT_EQ(read_file(of(5) / "memory.oom.group"), "1");
  EXPECT_EQ(read_file(of(5) / "pids.max"), "30");
  ASSERT_EQ(::write(group.entrance(), "0", 1), 1);
  EXPECT_EQ(read_file(of(5) / "cgroup.procs"), "0");
  group.end();
  EXPECT_EQ(read_file(of(5) / "cgroup.kill"), "1");
  EXPECT_TRUE(group.met_memory());
  EXPECT_TRUE(group.met_processes());
}

TEST_F(RunGroupTest, ACommandEntersItsGroupAndWhatIsLeftInItIsKilled) {
  settings.confinement.groups = std::make_shared<RunGroups>(tree);
  expect_run(1);
  EXPECT_EQ(end_of("true").status(), RunEnded::STATUS_COMPLETED);
  EXPECT_EQ(read_file(of(1) / "cgroup.procs"), "0");
  EXPECT_EQ(read_file(of(1) / "cgroup.kill"), "1");
}

TEST_F(RunGroupTest, ARunThatTheKernelKilledForItsMemorySaysWhichLimitItWas) {
  settings.confinement.groups = std::make_shared<RunGroups>(tree);
  settings.confinement.bounds.memory = 64 << 20;
  expect_run(1, "oom 1\noom_kill 1\n");
  const RunEnded ended = end_of("kill -9 $$");
  EXPECT_EQ(ended.failure(), ablate::v1::FAILURE_CLASS_RESOURCES);
  EXPECT_THAT(ended.reason(), HasSubstr("a run may have 64 MiB of memory here (--run-memory)"));
  EXPECT_THAT(ended.reason(), Not(HasSubstr("perhaps")));
}

}  // namespace
}  // namespace abl::agent
