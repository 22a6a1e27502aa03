// SPDX-License-Identifier: Apache-2.0
// Trials over several workers: which, how many, all at once or none, and none waits for ever.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "scheduler/placement.h"

namespace abl::scheduler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

WorkerState gpu_worker(const std::string& name, std::uint64_t session, int slots, bool cuda = true,
                       bool joins = true) {
  WorkerState worker{.name = name,
                     .host = name + "-host",
                     .session = session,
                     .result_version = 2,
                     .joins = joins,
                     .data = {.names = {"shapes"}}};
  for (int i = 0; i < slots; ++i)
    worker.slots.push_back({.index = static_cast<std::uint32_t>(i), .cuda = cuda});
  return worker;
}

Demand gang_of(int gpus, protocol::Split split = {}, storage::TrialId trial = 1) {
  return {.trial = trial, .gpus = gpus, .split = split, .data = "shapes", .result_version = 2};
}

constexpr protocol::Split kOnTwo{.least_nodes = 2, .most_nodes = 2};

int all_slots_of(const Placement& placement) {
  std::size_t slots = placement.slots.size();
  for (const auto& part : placement.parts) slots += part.slots.size();
  return static_cast<int>(slots);
}

TEST(Gang, SixteenGpusComeFromTwoWorkersWhereNoneHasThemAlone) {
  std::vector workers{gpu_worker("a", 1, 8), gpu_worker("b", 2, 8)};
  const auto placement = place(gang_of(16), workers);
  ASSERT_TRUE(placement);
  EXPECT_EQ(placement->session, 1u);
  EXPECT_EQ(placement->slots.size(), 8u);
  ASSERT_EQ(placement->parts.size(), 1u);
  EXPECT_EQ(placement->parts[0].session, 2u);
  EXPECT_EQ(placement->parts[0].slots.size(), 8u);
  EXPECT_FALSE(place(gang_of(1), workers)) << "all are taken";
}

TEST(Gang, OneWorkerThatHasThemAllIsWaitedFor) {
  std::vector workers{gpu_worker("a", 1, 4), gpu_worker("b", 2, 4), gpu_worker("large", 3, 8)};
  workers[2].slots[5].busy = true;
  EXPECT_FALSE(place(gang_of(8), workers)) << "it will be free";
  EXPECT_TRUE(reserve(gang_of(8), workers));
  EXPECT_TRUE(workers[2].slots[0].reserved);
  EXPECT_FALSE(workers[0].slots[0].reserved);
  workers[2].slots[5].busy = false;
  unreserve(workers);
  const auto placement = place(gang_of(8), workers);
  ASSERT_TRUE(placement);
  EXPECT_EQ(placement->session, 3u);
  EXPECT_TRUE(placement->parts.empty());
}

TEST(Gang, WorkersWithoutAnAddressTakeNoPart) {
  std::vector workers{gpu_worker("a", 1, 8), gpu_worker("b", 2, 8, true, /*joins=*/false)};
  EXPECT_FALSE(place(gang_of(16), workers));
  EXPECT_FALSE(reserve(gang_of(16), workers)) << "nothing is kept for what cannot come";
  EXPECT_FALSE(workers[0].slots[0].reserved);
  EXPECT_THAT(why_waiting(gang_of(16), workers), HasSubstr("--address"));
}

TEST(Gang, CommandsAndTakersOfWeightsStayOnOneWorker) {
  std::vector workers{gpu_worker("a", 1, 8), gpu_worker("b", 2, 8)};
  for (WorkerState& worker : workers) worker.allows_commands = worker.takes_sources = true;
  Demand command = gang_of(16), chained = gang_of(16);
  command.command = true, command.result_version.reset();
  chained.sources = true;
  EXPECT_FALSE(place(command, workers));
  EXPECT_FALSE(place(chained, workers));
  EXPECT_EQ(why_waiting(chained, workers), "needs 16 GPUs of one worker; the largest has 8");
}

TEST(Gang, NodesAreEvenAndOfDifferentWorkers) {
  std::vector workers{gpu_worker("two", 1, 2), gpu_worker("eight", 2, 8), gpu_worker("four", 3, 4)};
  const auto placement = place(gang_of(8, kOnTwo), workers);
  ASSERT_TRUE(placement);
  EXPECT_EQ(placement->session, 3u) << "where the gap is smallest";
  EXPECT_EQ(placement->slots.size(), 4u);
  ASSERT_EQ(placement->parts.size(), 1u);
  EXPECT_EQ(placement->parts[0].session, 2u);
  EXPECT_THAT(placement->parts[0].slots, ElementsAre(0, 1, 2, 3));
}

TEST(Gang, OnProcessorsEachWorkerGivesASlot) {
  std::vector workers{gpu_worker("a", 1, 3, false), gpu_worker("b", 2, 1, false)};
  const auto placement = place(gang_of(0, kOnTwo), workers);
  ASSERT_TRUE(placement);
  EXPECT_EQ(placement->slots.size(), 1u);
  EXPECT_EQ(placement->parts.at(0).slots.size(), 1u);
  EXPECT_FALSE(place(gang_of(0, kOnTwo, 2), workers)) << "two slots of one worker are not two workers";
}

TEST(Gang, TheHomeHasTheLease) {
  std::vector workers{gpu_worker("a", 1, 8), gpu_worker("b", 2, 8), gpu_worker("c", 3, 8)};
  Demand demand = gang_of(16);
  demand.home = "c-host";
  const auto placement = place(demand, workers);
  ASSERT_TRUE(placement);
  EXPECT_EQ(placement->session, 3u);
}

TEST(Gang, FewerDoWhereItsSweepSaysSoAndNoMoreAreThere) {
  std::vector workers{gpu_worker("a", 1, 8), gpu_worker("b", 2, 8)};
  const protocol::Split from_eight{.least_gpus = 8};
  workers[1].slots[0].busy = true;
  EXPECT_FALSE(place(gang_of(16, from_eight), workers)) << "16 are there, one of them is busy";
  workers[1].draining = true;
  const auto placement = place(gang_of(16, from_eight), workers);
  ASSERT_TRUE(placement) << "on what is left";
  EXPECT_EQ(all_slots_of(*placement), 8);
  EXPECT_TRUE(placement->parts.empty());
  std::vector few{gpu_worker("c", 3, 4)};
  EXPECT_FALSE(place(gang_of(16, from_eight), few));
  EXPECT_THAT(why_waiting(gang_of(16, from_eight), few), HasSubstr("needs 8 to 16 GPUs"));
}

TEST(Gang, OneOrTwoNodes) {
  const protocol::Split one_or_two{.least_nodes = 1, .most_nodes = 2};
  std::vector workers{gpu_worker("a", 1, 1, false), gpu_worker("b", 2, 1, false)};
  EXPECT_EQ(place(gang_of(0, one_or_two), workers)->parts.size(), 1u);
  std::vector alone{gpu_worker("a", 1, 2, false, /*joins=*/false)};
  const auto placement = place(gang_of(0, one_or_two), alone);
  ASSERT_TRUE(placement) << "one needs no address";
  EXPECT_THAT(placement->slots, ElementsAre(0));
}

TEST(Gang, WhatItWaitsForIsSaid) {
  std::vector workers{gpu_worker("a", 1, 1, false), gpu_worker("b", 2, 1, false, /*joins=*/false)};
  EXPECT_EQ(
      why_waiting(gang_of(0, kOnTwo), workers),
      "needs 2 slots, one on each of 2 workers; 1 of the connected workers can take part (start workers with "
      "--address)");
  workers[1].joins = true;
  workers[0].slots[0].busy = true;
  EXPECT_EQ(why_waiting(gang_of(0, kOnTwo), workers),
            "needs 2 slots, one on each of 2 workers, all at once; 1 free now");
}

TEST(Gang, SlotsAreKeptOnAsManyWorkersAsItTakesAndNoMore) {
  std::vector workers{gpu_worker("a", 1, 8), gpu_worker("b", 2, 8), gpu_worker("c", 3, 8)};
  for (WorkerState& worker : workers) worker.slots[0].busy = true;
  const Demand gang = gang_of(8, kOnTwo);
  ASSERT_TRUE(place(gang_of(4), workers)) << "seven are free on each";
  ASSERT_TRUE(reserve(gang, workers));
  int kept = 0;
  for (const WorkerState& worker : workers) kept += std::ranges::any_of(worker.slots, &SlotState::reserved);
  EXPECT_EQ(kept, 2);
  EXPECT_TRUE(place(gang_of(1), workers)) << "what is not kept is for others";
}

/// The scheduler's loop over its queue, with clocks of its own: trials take a while, the first that needs
/// several slots and finds no place has slots kept for it.
struct Loop {
  struct Running {
    Placement placement;
    int until = 0;
  };
  std::vector<WorkerState> workers;
  std::deque<Demand> waiting;
  std::vector<Running> running;
  int now = 0;

  void free(std::uint64_t session, const std::vector<std::uint32_t>& slots) {
    for (WorkerState& worker : workers)
      if (worker.session == session)
        for (const auto slot : slots) {
          EXPECT_TRUE(worker.slots[slot].busy);
          worker.slots[slot].busy = worker.slots[slot].slow = false;
        }
  }
  /// Returns: the trials that began.
  std::vector<storage::TrialId> look(std::mt19937& random) {
    std::erase_if(running, [&](const Running& run) {
      if (run.until > now) return false;
      free(run.placement.session, run.placement.slots);
      for (const auto& part : run.placement.parts) free(part.session, part.slots);
      return true;
    });
    unreserve(workers);
    std::vector<storage::TrialId> began;
    bool reserved = false;
    for (auto demand = waiting.begin(); demand != waiting.end();) {
      auto placement = place(*demand, workers);
      if (!placement) {
        if (!reserved && takes_several(*demand)) reserved = reserve(*demand, workers);
        ++demand;
        continue;
      }
      std::set<std::uint64_t> sessions{placement->session};
      for (const auto& part : placement->parts) EXPECT_TRUE(sessions.insert(part.session).second);
      began.push_back(demand->trial);
      running.push_back({*std::move(placement), now + 1 + static_cast<int>(random() % 5)});
      demand = waiting.erase(demand);
    }
    ++now;
    return began;
  }
};

TEST(Gang, TwoGangsThatEachNeedWhatTheOtherWantsBothRun) {
  std::mt19937 random{1};
  Loop loop{.workers = {gpu_worker("a", 1, 2), gpu_worker("b", 2, 2), gpu_worker("c", 3, 2)}};
  loop.waiting = {gang_of(6, {}, 1), gang_of(6, {}, 2), gang_of(4, {}, 3)};
  std::vector<storage::TrialId> began;
  for (int i = 0; i < 30; ++i)
    for (const auto trial : loop.look(random)) began.push_back(trial);
  EXPECT_THAT(began, ElementsAre(1, 2, 3));
}

TEST(Gang, NoGangStarvesBehindTrialsOfOneGpuOnFleetsOfAnySize) {
  std::mt19937 random{7};
  for (int size = 1; size <= 6; ++size)
    for (int round = 0; round < 20; ++round) {
      Loop loop;
      int total = 0;
      for (int i = 0; i < size; ++i) {
        const int slots = 1 + static_cast<int>(random() % 4);
        loop.workers.push_back(gpu_worker(fmt::format("w{}", i), static_cast<std::uint64_t>(i + 1), slots));
        total += slots;
      }
      storage::TrialId next = 1;
      const auto add_small = [&] { loop.waiting.push_back(gang_of(1, {}, next++)); };
      for (int i = 0; i < total; ++i) add_small();
      loop.look(random);
      const storage::TrialId whole = next++, half = next++;
      loop.waiting.push_front(gang_of(std::max(1, total / 2), {}, half));
      loop.waiting.push_front(gang_of(total, {}, whole));
      int whole_at = 0, half_at = 0;
      for (int look = 1; look < 60; ++look) {
        for (int i = 0; i < total; ++i) add_small();  // there is always something smaller
        for (const auto trial : loop.look(random)) {
          if (trial == whole) whole_at = look;
          if (trial == half) half_at = look;
        }
      }
      EXPECT_GT(whole_at, 0) << size << " workers, " << total << " GPUs";
      EXPECT_GT(half_at, 0) << size << " workers, " << total << " GPUs";
      EXPECT_LE(whole_at, 7) << "as soon as those that ran have ended";
    }
}

}  // namespace
}  // namespace abl::scheduler
