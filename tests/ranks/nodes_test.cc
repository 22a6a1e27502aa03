// SPDX-License-Identifier: Apache-2.0
// One trial on several machines: trainers that are started one by one, as workers do, at addresses of their
// own of the loopback interface.
#include <gmock/gmock.h>
#include <signal.h>

#include <cstdlib>

#include "tests/images/picture_files.h"
#include "tests/ranks/rank_processes.h"
#include "tests/ranks/trial_files.h"
#include "worker/trainer/ranks/nodes.h"

namespace abl::ranks {
namespace {

using testing::HasSubstr;

class NodesTest : public RanksTest {
 protected:
  NodesTest() { ::setenv("ABLATE_RANKS_KEY", "of this attempt", 1); }
  ~NodesTest() override { ::unsetenv("ABLATE_RANKS_KEY"); }

  static json long_trial() {
    auto recipe = full_recipe();
    recipe["epochs"] = 100'000;
    return trial(small_vit(), recipe);
  }

  /// Machine `node` of two, of `ranks` ranks in all; `local` are its own.
  std::vector<std::string> machine(const json& trial, int node, int first, int local, int ranks,
                                   const std::string& join, std::vector<std::string> more = {}) {
    more.insert(more.end(),
                {"--nodes", "2", "--node", std::to_string(node), "--first-rank", std::to_string(first),
                 "--local-ranks", std::to_string(local), "--address", "127.0.0." + std::to_string(node + 1)});
    if (!join.empty()) more.insert(more.end(), {"--join", join});
    auto flags = arguments(trial, ranks, more);
    *(std::ranges::find(flags, "--threads") + 1) = std::to_string(local);
    return flags;
  }
  static std::string address_of(TrainerProgram& leader) {
    while (const auto event = leader.next())
      if (event->at("event") == "rendezvous") return event->at("address");
    return "nothing was said";
  }
};

TEST_F(NodesTest, TwoMachinesTrainAsOneRankDoes) {
  const auto full = trial(small_vit(), full_recipe());
  const auto one = run(full, 1);
  TrainerProgram leader{machine(full, 0, 0, 1, 2, {})};
  TrainerProgram part{machine(full, 1, 1, 1, 2, address_of(leader))};
  const auto two = read_all(leader);
  const auto other = read_all(part);
  expect_same(one, two, 1e-4);
  EXPECT_EQ(two.start.at("environment").at("ranks"), 2);
  EXPECT_EQ(other.end.value("status", ""), "completed");
  EXPECT_EQ(other.exit_code, 0);
  EXPECT_TRUE(other.points.empty()) << "the first machine alone speaks";
  EXPECT_TRUE(other.checkpoint.empty());
}

TEST_F(NodesTest, UnevenMachinesAndOneWithAllRanksAreBitIdentical) {
  auto recipe = full_recipe();
  recipe["epochs"] = 1;
  const auto full = trial(small_vit(), recipe);
  const auto here = run(full, 3);
  TrainerProgram leader{machine(full, 0, 0, 1, 3, {})};
  TrainerProgram part{machine(full, 1, 1, 2, 3, address_of(leader))};
  const auto there = read_all(leader);
  ASSERT_EQ(there.end.value("status", ""), "completed") << there.end;
  for (const auto& [name, tensor] : here.state())
    EXPECT_TRUE(torch::equal(there.state().at(name), tensor)) << name;
  EXPECT_EQ(read_all(part).exit_code, 0);
}

TEST_F(NodesTest, ADeadMachineEndsTheRunAtTheOthers) {
  for (const bool leader_dies : {false, true}) {
    TrainerProgram leader{machine(long_trial(), 0, 0, 1, 2, {})};
    TrainerProgram part{machine(long_trial(), 1, 1, 1, 2, address_of(leader))};
    leader.reach(2);
    auto pids = ranks_of(leader.child().pid());
    for (const pid_t pid : ranks_of(part.child().pid())) pids.push_back(pid);
    ASSERT_EQ(pids.size(), 2U);
    ::kill((leader_dies ? leader : part).child().pid(), SIGKILL);
    const auto said = read_all(leader_dies ? part : leader);
    EXPECT_EQ(said.end.value("status", ""), "failed");
    EXPECT_EQ(said.end.value("failure", ""), "infrastructure") << said.end;
    EXPECT_THAT(said.end.value("reason", ""),
                HasSubstr(leader_dies ? "the first machine's trainer" : "the ranks on"));
    for (const pid_t pid : pids) wait_for_the_end_of(pid);
  }
}

TEST_F(NodesTest, WhatARankOfAnotherMachineMetIsTheReason) {
  TrainerProgram leader{machine(long_trial(), 0, 0, 1, 2, {})};
  TrainerProgram part{machine(long_trial(), 1, 1, 1, 2, address_of(leader))};
  leader.reach(2);
  const auto pids = ranks_of(part.child().pid());
  ASSERT_EQ(pids.size(), 1U);
  ::kill(pids[0], SIGSEGV);
  const auto said = read_all(leader);
  EXPECT_THAT(said.end.value("reason", ""), HasSubstr("rank 1 of 2: killed by SIGSEGV (11)"));
  EXPECT_THAT(said.end.value("reason", ""), testing::StartsWith("on "));
  EXPECT_FALSE(said.end.contains("failure")) << said.end;
  EXPECT_THAT(read_all(part).end.value("reason", ""), HasSubstr("rank 1 of 2: killed by SIGSEGV (11)"));
}

TEST_F(NodesTest, AFrozenMachineIsGoneAfterAWhile) {
  TrainerProgram leader{machine(long_trial(), 0, 0, 1, 2, {}, {"--node-silence", "3"})};
  TrainerProgram part{machine(long_trial(), 1, 1, 1, 2, address_of(leader))};
  leader.reach(2);
  const auto pids = ranks_of(part.child().pid());
  ::kill(part.child().pid(), SIGSTOP);
  for (const pid_t pid : pids) ::kill(pid, SIGSTOP);
  const auto said = read_all(leader);
  EXPECT_EQ(said.end.value("failure", ""), "infrastructure");
  EXPECT_THAT(said.end.value("reason", ""),
              testing::AllOf(HasSubstr("nothing heard from"), HasSubstr("for 3 s")));
  for (const pid_t pid : pids) ::kill(pid, SIGCONT);
  ::kill(part.child().pid(), SIGCONT);
  EXPECT_NE(read_all(part).exit_code, 0);
}

TEST_F(NodesTest, AMachineThatIsToStopStopsAllWithACheckpoint) {
  TrainerProgram leader{machine(long_trial(), 0, 0, 1, 2, {}, {"--checkpoint-seconds", "1000000"})};
  TrainerProgram part{machine(long_trial(), 1, 1, 1, 2, address_of(leader))};
  leader.reach(2);
  part.child().terminate();
  const auto said = read_all(leader), other = read_all(part);
  EXPECT_EQ(said.end.value("failure", ""), "infrastructure") << said.end;
  EXPECT_THAT(said.end.value("reason", ""), HasSubstr("its worker was asked to"));
  EXPECT_FALSE(said.checkpoint.empty());
  EXPECT_EQ(other.end.value("status", ""), "stopped");
}

TEST_F(NodesTest, AStopOfTheFirstMachineStopsAllAndTheyGoOnFromItsCheckpoint) {
  auto recipe = full_recipe();
  recipe["epochs"] = 60;
  const auto whole = trial(small_vit(), recipe);
  TrainerProgram leader{machine(whole, 0, 0, 1, 2, {})};
  TrainerProgram part{machine(whole, 1, 1, 1, 2, address_of(leader))};
  leader.reach(2);
  leader.child().terminate();
  const auto said = read_all(leader);
  EXPECT_EQ(said.end.value("status", ""), "stopped") << said.end;
  EXPECT_EQ(read_all(part).end.value("status", ""), "stopped");
  ASSERT_FALSE(said.checkpoint.empty());
  // the other machine sees no checkpoint: its ranks hear of it from the first one
  TrainerProgram again{machine(whole, 0, 0, 1, 2, {}, {"--resume", said.checkpoint})};
  TrainerProgram other{machine(whole, 1, 1, 1, 2, address_of(again))};
  const auto resumed = read_all(again);
  EXPECT_EQ(resumed.end.value("status", ""), "completed") << resumed.end;
  EXPECT_GT(resumed.start.value("resumed_step", 0), 0);
  EXPECT_TRUE(resumed.start.value("bit_exact", false));
  EXPECT_EQ(read_all(other).exit_code, 0);
}

TEST_F(NodesTest, ARankOfAnotherAttemptMeetsNobody) {
  TrainerProgram leader{machine(long_trial(), 0, 0, 1, 2, {}, {"--node-patience", "20"})};
  const auto address = address_of(leader);
  ::setenv("ABLATE_RANKS_KEY", "of an earlier attempt", 1);
  TrainerProgram stale{machine(long_trial(), 1, 1, 1, 2, address)};
  const auto said = read_all(stale);
  EXPECT_THAT(said.end.value("reason", ""), HasSubstr("another run's ranks meet at " + address));
  EXPECT_NE(said.exit_code, 0);
  const auto alone = read_all(leader);
  EXPECT_THAT(alone.end.value("reason", ""), HasSubstr("machine 2 of 2 has not come within 20 s"));
  EXPECT_EQ(alone.end.value("failure", ""), "infrastructure");
}

TEST_F(NodesTest, AMachineComesOnce) {
  TrainerProgram leader{machine(long_trial(), 0, 0, 1, 2, {})};
  const auto address = address_of(leader);
  TrainerProgram part{machine(long_trial(), 1, 1, 1, 2, address)};
  leader.reach(1);
  TrainerProgram twice{machine(long_trial(), 1, 1, 1, 2, address)};
  EXPECT_THAT(read_all(twice).end.value("reason", ""), HasSubstr("has come to " + address + " already"));
  leader.reach(10);  // which goes on
}

TEST_F(NodesTest, OtherImagesUnderTheNameAreRefused) {
  const auto fill = [&](const std::filesystem::path& root, std::uint8_t shade) {
    for (const char* const part : {"train/a", "train/b", "test/a", "test/b"})
      for (int i = 0; i < 16; ++i)
        images::write(root / part / (std::to_string(i) + ".jpg"),
                      images::jpeg_of(16, 16, {shade, static_cast<std::uint8_t>(10 * i), 0}));
    return root;
  };
  auto recipe = full_recipe();
  recipe["epochs"] = 100'000;
  auto pictures = trial(small_vit(), recipe);
  pictures["data"] = {{"name", "pictures"}, {"classes", 2}, {"image_size", 16}};
  const auto here = fill(folder_ / "here", 10), there = fill(folder_ / "there", 200);
  TrainerProgram leader{machine(pictures, 0, 0, 1, 2, {}, {"--data-root", here})};
  TrainerProgram part{machine(pictures, 1, 1, 1, 2, address_of(leader), {"--data-root", there})};
  const auto other = read_all(part), said = read_all(leader);
  EXPECT_THAT(other.end.value("reason", ""), HasSubstr("is another version here"));
  EXPECT_EQ(other.end.value("fault", ""), "data") << "so that its worker looks at them";
  EXPECT_EQ(said.end.value("failure", ""), "infrastructure") << said.end;
  EXPECT_FALSE(said.end.contains("fault")) << "its own machine's data are well";
  EXPECT_THAT(said.end.value("reason", ""), HasSubstr("is another version here"));
}

TEST_F(NodesTest, TheStoreListensAtTheAddressAlone) {
  const RendezvousServer server{"127.0.0.2"};
  EXPECT_EQ(server.rendezvous().host, "127.0.0.2");
  EXPECT_THROW((RendezvousServer{"203.0.113.1"}), Error) << "no address of this machine";
  EXPECT_THROW((RendezvousServer{"no-such-host.invalid"}), Error);
}

TEST_F(NodesTest, FlagsThatDoNotGoTogetherAreRefusedInOneLine) {
  ::unsetenv("ABLATE_RANKS_KEY");
  const auto said = run(trial(small_vit(), full_recipe()), 2,
                        {"--nodes", "2", "--node", "0", "--local-ranks", "1", "--address", "127.0.0.1"});
  EXPECT_THAT(said.end.value("reason", ""), HasSubstr("ABLATE_RANKS_KEY"));
  EXPECT_EQ(said.exit_code, 2);
}

}  // namespace
}  // namespace abl::ranks
