// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placement.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/document/result_version.h"
#include "storage/worker_store.h"

namespace abl::scheduler {
namespace {

using testing::ElementsAre;

WorkerState worker_of(const std::string& name, std::uint64_t session, int slots, bool cuda = false) {
  WorkerState worker{.name = name,
                     .host = name + "-host",
                     .session = session,
                     .result_version = 2,
                     .data = {.names = {"shapes"}}};
  for (int i = 0; i < slots; ++i)
    worker.slots.push_back({.index = static_cast<std::uint32_t>(i), .cuda = cuda});
  return worker;
}

/// A trial of the data set that every worker has, and of weights.
Demand distilling(const std::vector<Wanted>& weights) {
  return {.trial = 1, .data = "shapes", .weights = weights, .result_version = 2};
}

Demand demand_of(int gpus = 0) { return {.trial = 1, .gpus = gpus, .data = "shapes", .result_version = 2}; }

TEST(Placement, OneSlotComesFromTheWorkerWithMostFree) {
  std::vector<WorkerState> workers{worker_of("small", 1, 1), worker_of("large", 2, 3)};
  const auto placement = place(demand_of(), workers);
  ASSERT_TRUE(placement);
  EXPECT_EQ(placement->session, 2u);
  EXPECT_THAT(placement->slots, ElementsAre(0));
  EXPECT_TRUE(workers[1].slots[0].busy) << "the next trial must not get it";
}

TEST(Placement, SeveralGpusComeFromOneWorkerThatHasJustEnough) {
  std::vector<WorkerState> workers{worker_of("eight", 1, 8, true), worker_of("two", 2, 2, true),
                                   worker_of("one", 3, 1, true)};
  const auto placement = place(demand_of(2), workers);
  ASSERT_TRUE(placement);
  EXPECT_EQ(placement->session, 2u);
  EXPECT_THAT(placement->slots, ElementsAre(0, 1));
}

TEST(Placement, AWorkerThatRefusedATrialIsNotAskedAgain) {
  std::vector workers{worker_of("picky", 1, 4), worker_of("other", 2, 1)};
  Demand demand = demand_of();
  demand.refused_by = {1};
  EXPECT_EQ(place(demand, workers)->session, 2u);
  EXPECT_FALSE(place(demand, workers));
}

TEST(Placement, ATrialThatFailedOnAHostGoesToAnotherWhereThereIsOneThatCouldTakeIt) {
  std::vector workers{worker_of("bad", 1, 4), worker_of("good", 2, 1)};
  const auto failed = [&] {
    Demand demand = demand_of();
    demand.failed_on = {"bad-host"}, demand.home = "bad-host";
    allow_where_it_failed(demand, workers);
    return demand;
  };
  EXPECT_EQ(place(failed(), workers)->session, 2u) << "although its checkpoint lies where it failed";
  EXPECT_FALSE(place(failed(), workers)) << "it waits for the other, which is busy";
  workers[1].data.names.clear();
  EXPECT_EQ(place(failed(), workers)->session, 1u) << "the other could not take it at all";
}

constexpr double kGiB = 1 << 30;

/// A GPU of 16 GiB with runs that take 3 GiB each and may share it.
WorkerState shared_worker(int runs) {
  WorkerState worker = worker_of("w", 1, 1, true);
  worker.slots[0].busy = runs > 0;
  worker.slots[0].memory = 16 * kGiB;
  worker.slots[0].sharing = runs;
  worker.slots[0].used = runs * 3 * kGiB;
  return worker;
}
Demand packing(double memory) {
  Demand demand = demand_of(1);
  demand.packs = true, demand.memory_bytes = memory;
  return demand;
}

TEST(Packing, TrialsShareAGpuAsLongAsATenthOfItsMemoryIsLeft) {
  std::vector workers{shared_worker(1)};
  const auto placement = place_beside(packing(3 * kGiB), workers, 4);
  ASSERT_TRUE(placement);
  EXPECT_TRUE(placement->beside);
  EXPECT_THAT(placement->slots, ElementsAre(0));
  EXPECT_TRUE(place_beside(packing(3 * kGiB), workers, 4)) << "9 + 1.5 of 14.4";
  EXPECT_FALSE(place_beside(packing(3.5 * kGiB), workers, 4)) << "12.5 + 2 of 14.4";
  workers = {shared_worker(3)};
  EXPECT_TRUE(place_beside(packing(3.3 * kGiB), workers, 4)) << "9 + 3.3 + 2 of 14.4";
  workers = {shared_worker(3)};
  EXPECT_FALSE(place_beside(packing(3.5 * kGiB), workers, 4));
}

TEST(Packing, ATrialThatGetsAFreeSlotMayBeSharedWithByTheNext) {
  std::vector workers{shared_worker(0)};
  EXPECT_FALSE(place_beside(packing(kGiB), workers, 4)) << "there is nobody";
  EXPECT_FALSE(place(packing(kGiB), workers)->beside);
  EXPECT_TRUE(place_beside(packing(kGiB), workers, 4));
  workers = {shared_worker(0)};
  place(demand_of(1), workers);
  EXPECT_FALSE(place_beside(packing(kGiB), workers, 4)) << "who does not share";
}

TEST(Packing, NoMoreTrialsShareAGpuThanMay) {
  std::vector workers{shared_worker(2)};
  EXPECT_FALSE(place_beside(packing(kGiB), workers, 2));
  EXPECT_TRUE(place_beside(packing(kGiB), workers, 3));
  workers = {shared_worker(1)};
  EXPECT_FALSE(place_beside(packing(kGiB), workers, 1)) << "packing is off";
}

TEST(Packing, WhatIsNotMeasuredOrMayNotShareHasItsSlotForItself) {
  std::vector workers{shared_worker(1)};
  EXPECT_FALSE(place_beside(packing(0), workers, 4)) << "nobody knows what it takes";
  Demand alone = packing(kGiB);
  alone.packs = false;
  EXPECT_FALSE(place_beside(alone, workers, 4));
  Demand two = packing(kGiB);
  two.gpus = 2;
  EXPECT_FALSE(place_beside(two, workers, 4));
  workers[0].slots[0].sharing = 0;
  EXPECT_FALSE(place_beside(packing(kGiB), workers, 4)) << "beside one that may not share";
  workers = {shared_worker(1)};
  workers[0].slots[0].memory = 0;
  EXPECT_FALSE(place_beside(packing(kGiB), workers, 4)) << "a worker of an older release";
  workers = {shared_worker(1)};
  workers[0].drained = "new driver";
  EXPECT_FALSE(place_beside(packing(kGiB), workers, 4));
}

TEST(Packing, TheSlotWithTheFewestRunsGoesFirst) {
  std::vector workers{shared_worker(2), shared_worker(1)};
  workers[1].session = 2;
  EXPECT_EQ(place_beside(packing(kGiB), workers, 4)->session, 2u);
}

TEST(Packing, WhereAllSlotsAreSharedOneIsKeptForATrialThatNeedsOneForItself) {
  std::vector workers{shared_worker(3), shared_worker(2)};
  workers[1].session = 2;
  EXPECT_TRUE(keep_from_sharing(demand_of(1), workers));
  EXPECT_EQ(place_beside(packing(kGiB), workers, 4)->session, 1u)
      << "the one with fewer runs is to become empty";
  unreserve(workers);
  EXPECT_EQ(place_beside(packing(kGiB), workers, 4)->session, 2u);
  workers.push_back(shared_worker(0));
  workers[2].slots[0].busy = true;
  EXPECT_FALSE(keep_from_sharing(demand_of(1), workers)) << "the third comes by itself";
}

TEST(Packing, SharingPaysWhereRunsTogetherDoMoreThanOneAlone) {
  EXPECT_TRUE(sharing_pays(10, 6, 2));
  EXPECT_FALSE(sharing_pays(10, 5.2, 2)) << "1.04 times";
  EXPECT_FALSE(sharing_pays(10, 2, 4));
  EXPECT_TRUE(sharing_pays(0, 2, 4)) << "nobody knows";
  EXPECT_TRUE(sharing_pays(10, 0, 4));
}

TEST(Placement, ATrialGoesWhereTheLabelsAreThatItAsksFor) {
  std::vector workers{worker_of("a", 1, 4), worker_of("b", 2, 1), worker_of("c", 3, 1)};
  workers[0].labels = {{"host", "node7"}, {"gpu", "h100"}};
  workers[1].labels = {{"host", "node8"}, {"gpu", "a100"}};
  workers[2].labels = {{"host", "node9"}};
  const auto session = [&](const storage::Where& where) {
    auto copy = workers;
    Demand demand = demand_of();
    demand.where = where;
    const auto placed = place(demand, copy);
    return placed ? placed->session : 0;
  };
  EXPECT_EQ(session({{"gpu", {"a100"}}}), 2u);
  EXPECT_EQ(session({{"gpu", {"a100", "b200"}}}), 2u) << "any of a list";
  EXPECT_EQ(session({{"host", {"!node7", "!node8"}}}), 3u) << "none of those with !";
  EXPECT_EQ(session({{"gpu", {"!h100"}}, {"host", {"!node8"}}}), 3u)
      << "who has no such label has not that value";
  EXPECT_EQ(session({{"gpu", {"h100"}}, {"host", {"!node7"}}}), 0u) << "each of the labels";
  EXPECT_EQ(session({{"gpu", {"v100"}}}), 0u);
}

TEST(Placement, SaysWhichLabelNobodyHasAndTheNearest) {
  const std::vector<storage::Labels> workers{{{"gpu", "h100"}, {"host", "node7"}}, {{"host", "node8"}}};
  const auto why = [&](const storage::Where& where) { return storage::why_nobody_suits(where, workers); };
  EXPECT_EQ(why({{"gpu", {"h100"}}}), "");
  EXPECT_EQ(why({{"gpu", {"a100", "b200"}}}), "no worker with gpu=a100 or b200: gpu is h100");
  EXPECT_EQ(why({{"gpus", {"h100"}}}),
            "no worker with gpus=h100: none has a label gpus; did you mean 'gpu'?");
  EXPECT_EQ(why({{"gpu", {"h100"}}, {"host", {"!node7"}}}), "no worker with gpu=h100, host not node7");
  EXPECT_EQ(why({{"host", {"!node7", "!node8"}}}),
            "no worker with host not node7 or node8: host is node7 or node8");
}

TEST(Placement, ATrialOfFourGpusIsNotStarvedByTrialsOfOne) {
  std::vector workers{worker_of("busy", 1, 4, true), worker_of("free", 2, 4, true),
                      worker_of("small", 3, 2, true)};
  workers[0].slots[0].busy = workers[1].slots[0].busy = workers[1].slots[1].busy = true;
  ASSERT_FALSE(place(demand_of(4), workers));
  EXPECT_TRUE(reserve(demand_of(4), workers));
  std::vector<std::uint64_t> sessions;
  while (const auto placement = place(demand_of(1), workers)) sessions.push_back(placement->session);
  EXPECT_THAT(sessions, ElementsAre(2, 2, 3, 3)) << "the three that are free of the first are kept";
  workers[0].slots[0].busy = false;
  unreserve(workers);
  EXPECT_EQ(place(demand_of(4), workers)->session, 1u);
  EXPECT_FALSE(reserve(demand_of(5), workers)) << "nobody has five: it keeps nothing";
}

TEST(Placement, SlotsWhoseRunsGiveWayAreKeptForTheTrialThatTheyGiveWayTo) {
  std::vector workers{worker_of("some-free", 1, 4, true), worker_of("clearing", 2, 4, true)};
  for (int slot : {0, 1}) workers[0].slots[slot].busy = true;
  for (int slot : {0, 1, 2}) workers[1].slots[slot].busy = workers[1].slots[slot].clearing = true;
  EXPECT_TRUE(reserve(demand_of(4), workers));
  std::vector<std::uint64_t> sessions;
  while (const auto placement = place(demand_of(1), workers)) sessions.push_back(placement->session);
  EXPECT_THAT(sessions, ElementsAre(1, 1)) << "not the free one among those that become free";
}

TEST(Placement, NothingIsLeasedAheadWhereATrialWaitsThatGoesFirst) {
  std::vector workers{worker_of("cpu", 1, 1), worker_of("gpu", 2, 1, true)};
  workers[0].slots[0].busy = workers[1].slots[0].busy = true;
  EXPECT_TRUE(await(demand_of(1), workers));
  EXPECT_EQ(place_ahead(demand_of(), workers, 2)->session, 1u);
  EXPECT_EQ(place_ahead(demand_of(), workers, 2)->session, 1u);
  EXPECT_FALSE(place_ahead(demand_of(), workers, 2));
  unreserve(workers);
  EXPECT_EQ(place_ahead(demand_of(), workers, 2)->session, 2u);
}

TEST(Placement, AShortTrialMayBeLeasedBehindAnother) {
  std::vector workers{worker_of("w", 1, 2)};
  EXPECT_FALSE(place_ahead(demand_of(), workers, 2)) << "a free slot needs no line";
  place(demand_of(), workers);
  place(demand_of(), workers);
  std::vector<std::uint32_t> slots;
  while (const auto placement = place_ahead(demand_of(), workers, 2)) slots.push_back(placement->slots.at(0));
  EXPECT_THAT(slots, ElementsAre(0, 1, 0, 1));
  workers[0].slots[0].ahead = 0;
  workers[0].draining = true;
  EXPECT_FALSE(place_ahead(demand_of(), workers, 2));
}

TEST(Placement, BusySlotsAreLeftAlone) {
  std::vector<WorkerState> workers{worker_of("w", 1, 2)};
  workers[0].slots[0].busy = true;
  EXPECT_THAT(place(demand_of(), workers)->slots, ElementsAre(1));
  EXPECT_FALSE(place(demand_of(), workers));
}

TEST(Placement, ATrialGoesBackToTheHostOfItsCheckpoint) {
  std::vector<WorkerState> workers{worker_of("large", 1, 8), worker_of("small", 2, 1)};
  Demand demand = demand_of();
  demand.home = "small-host";
  EXPECT_EQ(place(demand, workers)->session, 2u);
  EXPECT_EQ(place(demand, workers)->session, 1u) << "when that is full, another will do";
}

TEST(Placement, ACommandGoesOnlyWhereCommandsAreAllowed) {
  std::vector<WorkerState> workers{worker_of("strict", 1, 8), worker_of("open", 2, 1)};
  workers[1].allows_commands = true;
  workers[1].result_version = 0;
  EXPECT_EQ(place({.trial = 1, .command = true}, workers)->session, 2u) << "which needs no trainer";
}

TEST(Placement, ATrialThatNoChangeTouchesGoesToOlderTrainersToo) {
  std::vector<WorkerState> workers{worker_of("older", 1, 8), worker_of("newest", 2, 1)};
  workers[0].result_version = 4;
  workers[1].result_version = 6;
  Demand untouched = demand_of(), touched = demand_of();
  untouched.result_version = 3;
  touched.result_version = 5;
  EXPECT_EQ(place(untouched, workers)->session, 1u) << "what came after 3 gives it the same numbers";
  EXPECT_EQ(place(touched, workers)->session, 2u) << "the older trainer would make wrong ones";
  EXPECT_FALSE(place(touched, workers));
}

TEST(Placement, ATrialGoesWhereAllItsWeightsAre) {
  std::vector<WorkerState> workers{worker_of("large", 1, 8), worker_of("small", 2, 1)};
  workers[0].weights.names = {"deit"};
  workers[1].weights.names = {"deit", "regnet"};
  EXPECT_EQ(place(distilling({{"deit"}, {"regnet"}}), workers)->session, 2u);
}

TEST(Placement, AFileThatIsWrongForOneTrialMayBeRightForAnother) {
  std::vector<WorkerState> workers{worker_of("w", 1, 2)};
  workers[0].weights = {.names = {"regnet"}, .wrong = {{{"regnet", "aa"}, "it is bb"}}};
  EXPECT_FALSE(place(distilling({{"regnet", "aa"}}), workers));
  EXPECT_TRUE(place(distilling({{"regnet", "bb"}}), workers));
}

TEST(Placement, WhyATrialWaitsTellsAFreeSlotFromOneThatIsKept) {
  std::vector<WorkerState> workers{worker_of("w", 1, 4, true)};
  EXPECT_EQ(why_waiting(demand_of(1), workers), "a GPU is free: it starts at once");
  for (int slot : {0, 1}) workers[0].slots[slot].busy = true;
  EXPECT_TRUE(reserve(demand_of(4), workers));
  EXPECT_EQ(why_waiting(demand_of(1), workers), "the free GPUs are kept for a trial that needs several");
  EXPECT_EQ(why_waiting(demand_of(4), workers), "needs 4 GPUs of one worker; 2 free now");
}

struct Wait {
  Demand demand;
  std::vector<WorkerState> workers;
  std::string reason;
};

class WhyWaiting : public testing::TestWithParam<Wait> {};

TEST_P(WhyWaiting, NamesTheFirstRequirementThatNobodyMeets) {
  std::vector<WorkerState> workers = GetParam().workers;
  EXPECT_FALSE(place(GetParam().demand, workers)) << "a reason is given only for what cannot be placed";
  EXPECT_EQ(why_waiting(GetParam().demand, GetParam().workers), GetParam().reason);
}

std::vector<Wait> waits() {
  WorkerState busy = worker_of("busy", 1, 2), one_busy = worker_of("busy", 1, 1),
              gpus = worker_of("g", 1, 2, true);
  for (WorkerState* worker : {&busy, &one_busy})
    for (SlotState& slot : worker->slots) slot.busy = true;
  gpus.slots[0].busy = true;
  WorkerState full_gpus = gpus;
  full_gpus.slots[1].busy = true;
  WorkerState older = worker_of("older", 1, 1), none = worker_of("none", 1, 1);
  older.result_version = 1;
  WorkerState newer = worker_of("newer", 1, 1);
  newer.result_version = config::newest_result_version() + 1;
  none.result_version = 0;
  WorkerState with_weights = worker_of("w", 1, 1), with_others = with_weights, without_data = with_weights;
  with_weights.weights.names = {"deit"};
  with_others.weights = {.names = {"regnet"}, .wrong = {{{"regnet", "aa"}, "another regnet"}}};
  without_data.data.names.clear();
  without_data.weights.names = {"regnet"};
  WorkerState ill = worker_of("ill", 1, 1), ill_gpu = worker_of("ill", 1, 1, true),
              unmounted = worker_of("w", 1, 1);
  ill.trouble = ill_gpu.trouble = "cannot write /x: No space left on device";
  unmounted.data.gone = {{"shapes", "its data 'shapes' are gone: /shapes is empty"}};
  return {
      {demand_of(), {}, "no worker is connected"},
      {demand_of(), {ill}, "worker ill is unhealthy: cannot write /x: No space left on device"},
      {demand_of(), {ill, one_busy}, "the only slot is busy"},
      {demand_of(1),
       {ill_gpu, worker_of("w", 2, 2)},
       "worker ill is unhealthy: cannot write /x: No space left on device"},
      {demand_of(), {unmounted}, "worker w: its data 'shapes' are gone: /shapes is empty"},
      {demand_of(), {busy}, "all 2 slots are busy"},
      {demand_of(), {one_busy}, "the only slot is busy"},
      {demand_of(1), {worker_of("w", 1, 2)}, "needs 1 GPU; no connected worker has one"},
      {demand_of(2), {worker_of("w", 1, 1, true)}, "needs 2 GPUs of one worker; the largest has 1"},
      {demand_of(2), {gpus}, "needs 2 GPUs of one worker; 1 free now"},
      {demand_of(1), {full_gpus}, "all 2 GPUs are busy"},
      {demand_of(), {older}, "worker older has trainer result version 1, this needs 2"},
      {demand_of(),
       {newer},
       fmt::format("worker newer has a newer trainer than this scheduler knows (result version {}, here {})",
                   newer.result_version, config::newest_result_version())},
      {demand_of(), {none}, "worker none has no trainer"},
      {{.trial = 1, .data = "imagenet-1k", .result_version = 2},
       {worker_of("w", 1, 1)},
       "no worker has the data set imagenet-1k (start one with --data imagenet-1k=FOLDER)"},
      {distilling({{"deit"}, {"regnet"}}),
       {with_weights},
       "no worker has the weights regnet (start one with --weights regnet=FILE)"},
      {distilling({{"regnet"}}),
       {with_weights, without_data},
       "no worker that has the rest has the weights regnet (start one with --weights regnet=FILE)"},
      {distilling({{"regnet", "aa"}}), {with_others}, "another regnet"},
      {{.trial = 1, .command = true},
       {worker_of("w", 1, 1)},
       "no worker allows commands (start one with --allow-commands)"},
  };
}

INSTANTIATE_TEST_SUITE_P(Reasons, WhyWaiting, testing::ValuesIn(waits()));

}  // namespace
}  // namespace abl::scheduler
