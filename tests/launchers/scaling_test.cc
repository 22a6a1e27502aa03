// SPDX-License-Identifier: Apache-2.0
#include "launchers/scaling.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

namespace abl::launchers {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const Time kNow{std::chrono::hours{1000}};

QueueConfig config(int max, int slots = 1) {
  return {.name = "q",
          .max_workers = max,
          .backlog = 100,
          .time_limit = minutes{60},
          .idle_timeout = minutes{5},
          .cool_down = seconds{30},
          .slots = slots};
}
WaitingTrials waits(std::size_t trials, std::set<std::size_t> queues = {0}) {
  return {.trials = trials, .queues = std::move(queues)};
}
PilotStanding pilot(const std::string& id, PilotState state, bool connected = false, bool busy = false) {
  return {.pilot = {.id = id, .queue = "q", .state = state},
          .connected = connected,
          .busy = busy,
          .since = kNow,
          .idle_since = kNow};
}
int submitted(const Decisions& decisions, std::size_t queue = 0) {
  int pilots = 0;
  for (const Decision& decision : decisions.all)
    if (decision.kind == Decision::Kind::kSubmit && decision.queue == queue) pilots += decision.pilots;
  return pilots;
}
std::vector<std::string> cancelled(const Decisions& decisions) {
  std::vector<std::string> ids;
  for (const Decision& decision : decisions.all)
    for (const Pilot& pilot : decision.which) ids.push_back(pilot.id);
  return ids;
}

TEST(Scaling, SubmitsAPilotForEachWorkerThatWaitingTrialsFill) {
  const auto decisions = decide({{.config = config(10, 4)}}, {waits(9)}, kNow);
  EXPECT_EQ(submitted(decisions), 2) << "the ninth fills a quarter of a worker";
  EXPECT_THAT(decisions.all.at(0).reason, HasSubstr("9 trials wait for its workers"));
  EXPECT_EQ(submitted(decide({{.config = config(10, 4)}}, {waits(10)}, kNow)), 3);
}

TEST(Scaling, SubmitsNoMoreThanThereIsAPlaceForAndSaysWhatIsInTheWay) {
  QueueStanding queue{.config = config(10)};
  queue.room = Room{.pilots = 2, .why = "w3 does not answer"};
  auto decisions = decide({queue}, {waits(5)}, kNow);
  EXPECT_EQ(submitted(decisions), 2);
  EXPECT_THAT(decisions.why.at(0), HasSubstr("no more, for w3 does not answer"));
  queue.room->pilots = 0;
  decisions = decide({queue}, {waits(5)}, kNow);
  EXPECT_EQ(submitted(decisions), 0);
  EXPECT_THAT(decisions.why.at(0), HasSubstr("5 more wanted, but w3 does not answer"));
}

TEST(Scaling, AWorkerWithoutATimeLimitHasTimeForWhatTakesLong) {
  QueueStanding queue{.config = config(10)};
  queue.config.time_limit = seconds{0};
  WaitingTrials long_ones = waits(1);
  long_ones.takes = std::chrono::hours{100};
  EXPECT_EQ(submitted(decide({queue}, {long_ones}, kNow)), 1);
  queue.pilots = {pilot("1", PilotState::kRunning, true)};
  EXPECT_EQ(submitted(decide({queue}, {long_ones}, kNow)), 0) << "the one that is idle takes it";
}

TEST(Scaling, SubmitsNothingForTooSmallAPartOfAWorkerAndSaysSo) {
  const auto decisions = decide({{.config = config(10, 4)}}, {waits(1)}, kNow);
  EXPECT_THAT(decisions.all, IsEmpty());
  EXPECT_THAT(decisions.why.at(0), HasSubstr("25 % of a worker, less than min_utilisation"));
}

TEST(Scaling, CountsWhatIsComingAndWhatIsIdle) {
  EXPECT_EQ(submitted(decide({{.config = config(10),
                               .pilots = {pilot("1", PilotState::kWaiting), pilot("2", PilotState::kRunning),
                                          pilot("3", PilotState::kRunning, true, false),
                                          pilot("4", PilotState::kRunning, true, true)}}},
                             {waits(5)}, kNow)),
            2);
}

TEST(Scaling, KeepsToTheLargestNumberAndTheBacklog) {
  EXPECT_EQ(submitted(decide({{.config = config(3)}}, {waits(50)}, kNow)), 3);
  QueueConfig few = config(30);
  few.backlog = 2;
  const auto decisions =
      decide({{.config = few, .pilots = {pilot("1", PilotState::kWaiting)}}}, {waits(50)}, kNow);
  EXPECT_EQ(submitted(decisions), 1);
  EXPECT_THAT(decisions.all.at(0).reason, HasSubstr("1 of a backlog of 2 waiting"));
}

TEST(Scaling, KeepsTheSmallestNumberWithoutAnyTrial) {
  QueueConfig two = config(5);
  two.min_workers = 2;
  EXPECT_EQ(submitted(decide({{.config = two}}, {}, kNow)), 2);
  auto idle = pilot("1", PilotState::kRunning, true);
  idle.idle_since = kNow - minutes{60};
  EXPECT_THAT(cancelled(decide({{.config = two, .pilots = {idle, pilot("2", PilotState::kRunning, true)}}},
                               {}, kNow)),
              IsEmpty());
}

TEST(Scaling, AsksForNoPilotForATrialThatDoesNotFitIntoItsTime) {
  WaitingTrials longer = waits(3);
  longer.takes = minutes{60};
  const auto decisions = decide({{.config = config(5)}}, {longer}, kNow);
  EXPECT_EQ(submitted(decisions), 0);
  EXPECT_THAT(decisions.why.at(0), HasSubstr("3 take longer than its workers have"));
  longer.takes = minutes{58};
  EXPECT_EQ(submitted(decide({{.config = config(5)}}, {longer}, kNow)), 3);
}

TEST(Scaling, AsksForGpusOfOneWorker) {
  QueueConfig four = config(5, 4);
  four.gpus = 4;
  WaitingTrials pairs = waits(4);
  pairs.gpus = 2;
  EXPECT_EQ(submitted(decide({{.config = four}}, {pairs}, kNow)), 2);
  pairs.gpus = 8;
  EXPECT_EQ(submitted(decide({{.config = four}}, {pairs}, kNow)), 0);
}

TEST(Scaling, CountsATrialForOneQueueAlone) {
  const auto decisions = decide({{.config = config(2)}, {.config = config(5)}}, {waits(3, {0, 1})}, kNow);
  EXPECT_EQ(submitted(decisions, 0), 2);
  EXPECT_EQ(submitted(decisions, 1), 1);
}

TEST(Scaling, NeverPromisesMoreGpuHoursThanThereAre) {
  QueueConfig capped = config(10, 4);
  capped.gpus = 4;
  capped.max_gpu_hours = 12;  // three pilots of an hour
  EXPECT_EQ(submitted(decide({{.config = capped}}, {waits(40)}, kNow)), 3);
  const auto decisions = decide(
      {{.config = capped, .pilots = {pilot("1", PilotState::kWaiting)}, .gpu_hours = 5}}, {waits(40)}, kNow);
  EXPECT_EQ(submitted(decisions), 0);
  EXPECT_THAT(decisions.why.at(0), HasSubstr("9.0 of 12.0 GPU hours are used or promised"));
}

TEST(Scaling, SubmitsNothingToAPausedQueue) {
  const auto decisions = decide({{.config = config(3), .paused = "3 submissions failed"}}, {waits(2)}, kNow);
  EXPECT_EQ(submitted(decisions), 0);
  EXPECT_THAT(decisions.why.at(0), HasSubstr("paused: 3 submissions failed"));
}

TEST(Scaling, EndsAWorkerThatHasBeenIdleForTooLong) {
  auto idle = pilot("7", PilotState::kRunning, true);
  idle.idle_since = kNow - minutes{5};
  const QueueStanding queue{.config = config(3),
                            .pilots = {idle, pilot("8", PilotState::kRunning, true, true)}};
  const auto decisions = decide({queue}, {}, kNow);
  EXPECT_THAT(cancelled(decisions), testing::ElementsAre("7"));
  EXPECT_EQ(decisions.all.at(0).reason, "nothing ran there for 300 s");
  EXPECT_FALSE(decisions.all.at(0).fruitless);
  EXPECT_TRUE(decide({queue}, {waits(1)}, kNow).all.at(0).fruitless)
      << "it could have run that trial, and did not";
}

TEST(Scaling, GivesUpPilotsThatWaitForNobodyOnceTheQueueHasCooledDown) {
  QueueStanding queue{.config = config(5),
                      .pilots = {pilot("9", PilotState::kWaiting), pilot("10", PilotState::kWaiting)},
                      .last_submission = kNow - seconds{10}};
  EXPECT_THAT(cancelled(decide({queue}, {}, kNow)), IsEmpty());
  queue.last_submission = kNow - seconds{30};
  EXPECT_THAT(cancelled(decide({queue}, {}, kNow)), SizeIs(2));
  EXPECT_THAT(cancelled(decide({queue}, {waits(1)}, kNow)), testing::ElementsAre("10")) << "the newest";
}

TEST(Scaling, GivesUpAPilotWhoseWorkerIsNotHeardOf) {
  auto silent = pilot("7", PilotState::kRunning);
  silent.since = kNow - minutes{10};
  const auto decisions = decide({{.config = config(3), .pilots = {silent}}}, {waits(1)}, kNow);
  EXPECT_THAT(cancelled(decisions), testing::ElementsAre("7"));
  EXPECT_TRUE(decisions.all.at(0).fruitless);
}

TEST(Scaling, TellsAPilotToEndOnceAndInsistsWhenItDoesNot) {
  auto leaving = pilot("7", PilotState::kRunning, true);
  leaving.idle_since = kNow - minutes{60};
  leaving.leaving = kNow - seconds{119};  // a second order would end it before its checkpoints are written
  EXPECT_THAT(decide({{.config = config(3), .pilots = {leaving}}}, {}, kNow).all, IsEmpty());
  leaving.leaving = kNow - minutes{2};
  EXPECT_THAT(cancelled(decide({{.config = config(3), .pilots = {leaving}}}, {}, kNow)),
              testing::ElementsAre("7"));
}

TEST(Scaling, PausesAfterSubmissionsThatFailedInARow) {
  SubmissionPolicy policy;
  EXPECT_FALSE(policy.failed(kNow));
  EXPECT_FALSE(policy.may_submit(kNow + seconds{9}));
  EXPECT_TRUE(policy.may_submit(kNow + seconds{10}));
  EXPECT_FALSE(policy.failed(kNow));
  policy.succeeded();
  EXPECT_FALSE(policy.failed(kNow));
  EXPECT_FALSE(policy.failed(kNow));
  EXPECT_TRUE(policy.failed(kNow));
}

/// A cluster that starts pilots when it likes, ends some, and trials that come in bursts.
TEST(Scaling, FinishesAllThatWaitsKeepsItsBoundsAndGoesBackToItsMinimum) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random{seed};
    QueueStanding queue{.config = config(6, 2)};
    queue.config.backlog = 3;
    queue.config.min_workers = static_cast<int>(seed % 2);
    queue.config.min_utilisation = 0;
    std::vector<int> left;                            // seconds of trials that wait
    std::map<std::string, std::vector<int>> running;  // by pilot
    int next_id = 1, submissions = 0;
    Time now = kNow;
    for (int second = 0; second < 6000; ++second, now += seconds{1}) {
      if (second < 2000 && random() % 100 == 0)
        for (unsigned i = random() % 12; i > 0; --i) left.push_back(static_cast<int>(20 + random() % 100));
      for (PilotStanding& each : queue.pilots) {
        auto& slots = running[each.pilot.id];
        if (each.pilot.state == PilotState::kWaiting && random() % 20 == 0)
          each.pilot.state = PilotState::kRunning, each.since = now;
        if (each.pilot.state == PilotState::kRunning && now - each.since > seconds{3} && !each.connected)
          each.connected = true, each.idle_since = now;
        for (int& trial : slots) --trial;
        std::erase_if(slots, [](int trial) { return trial <= 0; });
        while (each.connected && !each.leaving && slots.size() < 2 && !left.empty())
          slots.push_back(left.back()), left.pop_back();
        if (each.busy && slots.empty()) each.idle_since = now;
        each.busy = !slots.empty();
      }
      std::erase_if(queue.pilots,
                    [&](const PilotStanding& each) {  // its node goes down, or it ends as it was told
                      if (!(each.leaving || random() % 2000 == 0)) return false;
                      auto& slots = running[each.pilot.id];
                      left.insert(left.end(), slots.begin(), slots.end());
                      slots.clear();
                      return true;
                    });
      const auto decisions = decide({queue}, {waits(left.size())}, now);
      for (const Decision& decision : decisions.all) {
        EXPECT_FALSE(decision.fruitless);
        for (const Pilot& gone : decision.which)
          std::ranges::find(queue.pilots, gone.id, [](const auto& each) { return each.pilot.id; })->leaving =
              now;
        for (int i = 0; i < decision.pilots; ++i, ++submissions) {
          queue.pilots.push_back({.pilot = {.id = std::to_string(next_id++), .queue = "q"}, .since = now});
          queue.last_submission = now;
        }
      }
      ASSERT_LE(queue.pilots.size(), 6U);
      ASSERT_LE(std::ranges::count(queue.pilots, PilotState::kWaiting,
                                   [](const auto& each) { return each.pilot.state; }),
                3);
    }
    EXPECT_THAT(left, IsEmpty()) << seed;
    EXPECT_EQ(queue.pilots.size(), static_cast<std::size_t>(queue.config.min_workers)) << seed;
    EXPECT_LT(submissions, 100) << "it does not submit and cancel in turn, seed " << seed;
  }
}

TEST(Scaling, APilotWithTooLittleTimeLeftIsNotComingAndNotToBlame) {
  PilotStanding late = pilot("1", PilotState::kRunning, true, false);
  late.pilot.ran = minutes{50};
  late.idle_since = kNow - minutes{6};
  WaitingTrials long_ones = waits(1);
  long_ones.takes = minutes{20};
  const auto decisions = decide({{.config = config(2), .pilots = {late}}}, {long_ones}, kNow);
  EXPECT_EQ(submitted(decisions), 1) << "in the nine minutes that it has nothing of them ends";
  EXPECT_THAT(cancelled(decisions), testing::ElementsAre("1"));
  for (const Decision& decision : decisions.all) EXPECT_FALSE(decision.fruitless);
  long_ones.takes = minutes{5};
  EXPECT_EQ(submitted(decide({{.config = config(2), .pilots = {late}}}, {long_ones}, kNow)), 0);
}

TEST(Scaling, APilotWhoseWorkerIsThereIsNotGivenUpAsOneThatWaits) {
  EXPECT_THAT(
      cancelled(decide({{.config = config(2), .pilots = {pilot("1", PilotState::kWaiting, true, true)}}}, {},
                       kNow)),
      IsEmpty());
}

TEST(Scaling, APilotThatWaitsForTooLongIsGivenUp) {
  PilotStanding waiting = pilot("1", PilotState::kWaiting);
  waiting.since = kNow - std::chrono::hours{24 * 7};
  EXPECT_THAT(cancelled(decide({{.config = config(2), .pilots = {waiting}}}, {waits(3)}, kNow)),
              testing::ElementsAre("1"));
  waiting.since += seconds{1};
  EXPECT_THAT(cancelled(decide({{.config = config(2), .pilots = {waiting}}}, {waits(3)}, kNow)), IsEmpty());
}

}  // namespace
}  // namespace abl::launchers
