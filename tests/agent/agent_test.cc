// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/agent.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "base/file.h"
#include "base/sha256.h"
#include "tests/agent/agent_fixture.h"
#include "tests/agent/few_descriptors.h"
#include "tests/small_disk.h"

namespace abl::agent {
namespace {

using ablate::v1::RunBatch;
using ablate::v1::RunEnded;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr const char* kTwoSteps =
    R"(echo '{"event":"metric","step":1,"values":{"val/top1":12.5}}'; echo '{"event":"metric","step":2,"values":{"val/top1":0.1}}';
       echo '{"event":"end","status":"completed"}')";
constexpr const char* kEndless = R"(echo '{"event":"metric","step":1,"values":{"a":1}}'; exec sleep 1000)";

TEST_F(AgentTest, AnAssignedTrialsMetricsAndEndReachTheScheduler) {
  Worker worker{folder.path(), scheduler.address()};
  scheduler.assign(shell_assignment(7, kTwoSteps));
  const auto batches = scheduler.wait_for_end(7);
  EXPECT_THAT(points(batches, "val/top1"), ElementsAre(Pair(1, 12.5), Pair(2, 0.1)));
  EXPECT_EQ(batches.back().ended().status(), RunEnded::STATUS_COMPLETED);
  EXPECT_EQ(batches.front().started().directory(), (folder.path() / "runs/107/1").string());
  for (std::size_t i = 0; i < batches.size(); ++i) EXPECT_EQ(batches[i].seq(), i + 1);
  EXPECT_TRUE(eventually([&] { return worker->settled(); }));
  EXPECT_TRUE(is_spool_empty(folder.path())) << "what is acknowledged need not be kept";
}

TEST_F(AgentTest, HelloSaysWhatTheWorkerIs) {
  Worker worker{folder.path(), scheduler.address()};
  const auto hello = scheduler.hello();
  EXPECT_EQ(hello.lowest_protocol(), 1);
  EXPECT_EQ(hello.highest_protocol(), 1);
  EXPECT_EQ(hello.name(), "worker-1");
  EXPECT_EQ(hello.host(), "here");
  EXPECT_EQ(hello.result_version(), 3);
  EXPECT_TRUE(hello.allows_commands());
  EXPECT_THAT(hello.data(), ElementsAre("cifar10", "shapes"));
  EXPECT_THAT(hello.weights(), ElementsAre("deit"));
  ASSERT_EQ(hello.slots_size(), 1);
  EXPECT_EQ(hello.slots(0).threads(), 2);
  EXPECT_FALSE(hello.instance().empty());
}

TEST_F(AgentTest, HeartbeatsNameTheRunsUnderWay) {
  Worker worker{folder.path(), scheduler.address()};
  scheduler.assign(shell_assignment(7, kEndless));
  EXPECT_TRUE(scheduler.heard([](const auto& messages) {
    return std::any_of(messages.begin(), messages.end(), [](const auto& message) {
      return message.has_heartbeat() && message.heartbeat().runs_size() == 1 &&
             message.heartbeat().runs(0) == 7;
    });
  }));
}

TEST_F(AgentTest, WhatIsUnacknowledgedIsSentAgainAfterTheSchedulerWasAway) {
  scheduler.acknowledge(false);
  Worker worker{folder.path(), scheduler.address()};
  scheduler.assign(shell_assignment(7, R"(echo before; while [ ! -e go ]; do sleep 0.01; done; echo after
                                          echo '{"event":"end","status":"completed"}')"));
  ASSERT_TRUE(eventually([&] { return log_of(scheduler.batches(7)) == "before\n"; }));
  scheduler.stop();
  scheduler.forget();
  write_text(folder.path() / "runs/107/1/go", "");
  ASSERT_TRUE(eventually([&] { return !worker->busy(); })) << "a run goes on while the scheduler is away";
  scheduler.start();
  const auto batches = scheduler.wait_for_end(7);
  EXPECT_EQ(log_of(batches), "before\nafter\n");
  EXPECT_EQ(batches.front().seq(), 1U);
  EXPECT_THAT(scheduler.hello(2).runs(), ElementsAre(7U));
  EXPECT_EQ(scheduler.hello(2).instance(), scheduler.hello(1).instance());
  EXPECT_FALSE(worker->settled());
  scheduler.acknowledge_run(7, batches.back().seq());
  EXPECT_TRUE(eventually([&] { return worker->settled(); }));
}

TEST_F(AgentTest, WhatIsAcknowledgedIsNotSentAgain) {
  scheduler.acknowledge(false);
  Worker worker{folder.path(), scheduler.address()};
  scheduler.assign(shell_assignment(7, kEndless));
  ASSERT_TRUE(eventually([&] { return !scheduler.batches(7).empty(); }));
  const auto last = scheduler.batches(7).back().seq();
  scheduler.acknowledge_run(7, last);
  scheduler.acknowledge_run(8, 5);  // of a run that is not here
  scheduler.stop_run(7, "cancelled");
  scheduler.wait_for_end(7);  // so the acknowledgement has arrived
  scheduler.stop();
  scheduler.forget();
  scheduler.start();
  EXPECT_EQ(scheduler.wait_for_end(7).front().seq(), last + 1);
}

TEST_F(AgentTest, WhatTheSchedulerHasOfAnEarlierStartIsSkippedThoughNotYetSent) {
  scheduler.acknowledge(false);
  {
    SpoolFiles files{folder.path() / "spool"};
    RunSpool dead{files, 7, "token"};
    RunBatch batch;
    batch.set_log("line\n");
    for (int i = 0; i < 200; ++i) dead.append(batch);
  }
  Worker worker{folder.path(), scheduler.address()};
  ASSERT_TRUE(eventually([&] { return scheduler.batches(7).size() == 64; }));  // the window is full
  scheduler.acknowledge_run(7, 150);
  const auto batches = scheduler.wait_for_end(7);
  EXPECT_EQ(batches.size(), 64U + 51U);
  EXPECT_EQ(batches.at(64).seq(), 151U);
  EXPECT_EQ(batches.back().seq(), 201U);
}

TEST_F(AgentTest, ARefusedSessionIsTriedAgain) {
  scheduler.welcome(false);
  Worker worker{folder.path(), scheduler.address()};
  scheduler.hello(3);
  EXPECT_FALSE(worker->connected());
  scheduler.welcome(true);
  EXPECT_TRUE(eventually([&] { return worker->connected(); }));
}

TEST_F(AgentTest, ARestartedWorkerSendsWhatItsDeadRunsSaidAndEndsThemAsLost) {
  scheduler.acknowledge(false);
  {
    SpoolFiles files{folder.path() / "spool"};
    RunSpool dead{files, 7, "token"};  // as a killed worker leaves it
    RunBatch batch;
    batch.set_log("before the kill\n");
    dead.append(batch);
    RunSpool silent{files, 8, "token"};
    silent.keep_program("of an earlier start of the machine\n");
    RunSpool ended{files, 9, "token"};
    batch.mutable_ended()->set_status(RunEnded::STATUS_COMPLETED);
    ended.append(batch);
  }
  Worker worker{folder.path(), scheduler.address()};
  EXPECT_THAT(scheduler.hello().runs(), ElementsAre(7U, 8U, 9U));
  const auto dead = scheduler.wait_for_end(7);
  EXPECT_EQ(log_of(dead), "before the kill\n");
  EXPECT_EQ(dead.back().seq(), 2U);
  EXPECT_EQ(dead.back().ended().status(), RunEnded::STATUS_LOST);
  EXPECT_EQ(dead.back().ended().reason(), "its worker was killed and started again");
  EXPECT_TRUE(dead.back().ended().retryable());
  EXPECT_EQ(scheduler.wait_for_end(8).back().ended().status(), RunEnded::STATUS_LOST);
  EXPECT_EQ(scheduler.wait_for_end(9).size(), 1U);
  EXPECT_EQ(scheduler.wait_for_end(9).back().ended().status(), RunEnded::STATUS_COMPLETED);
  EXPECT_FALSE(worker->busy());
}

TEST_F(AgentTest, AFencedRunIsKilledAndItsSpoolDropped) {
  Worker worker{folder.path(), scheduler.address()};
  scheduler.assign(shell_assignment(7, kEndless));
  ASSERT_TRUE(eventually([&] { return !scheduler.batches(7).empty(); }));
  scheduler.fence(7);
  EXPECT_TRUE(eventually([&] { return worker->settled(); }));
  EXPECT_TRUE(is_spool_empty(folder.path()));
  for (const auto& batch : scheduler.batches(7)) EXPECT_FALSE(batch.has_ended());
}

TEST_F(AgentTest, ARunWaitsUntilNothingIsKeptOfOneOfItsNumberFromAnotherResultsFile) {
  Worker worker{folder.path(), scheduler.address(), true, 2};
  auto endless = shell_assignment(8, kEndless);
  endless.set_slots(0, 1);
  scheduler.assign(endless);
  auto former = shell_assignment(7, kEndless);
  former.set_token("former-token");
  scheduler.assign(former);
  ASSERT_TRUE(eventually([&] { return !scheduler.batches(7).empty() && !scheduler.batches(8).empty(); }));
  scheduler.fence(7);
  auto assign = shell_assignment(
      7, "grep -l former-token ../../../spool/*.spool > found; mv found seen; exec sleep 1000");
  assign.set_attempt(2);
  assign.set_token("token");
  const auto seen = folder.path() / "runs/107/2/seen";
  ASSERT_TRUE(eventually([&] {
    scheduler.assign(assign);
    return std::filesystem::exists(seen);
  }));
  EXPECT_EQ(read_file(seen), "") << "a worker that was killed now could not tell them apart";
}

TEST_F(AgentTest, AnAssignmentToASlotThatIsStillTakenWaitsForIt) {
  Worker worker{folder.path(), scheduler.address()};
  scheduler.assign(shell_assignment(7, kEndless));
  ASSERT_TRUE(eventually([&] { return !scheduler.batches(7).empty(); }));
  scheduler.assign(shell_assignment(8, kTwoSteps));
  scheduler.fence(7);
  EXPECT_EQ(scheduler.wait_for_end(8).back().ended().status(), RunEnded::STATUS_COMPLETED);
}

/// Waits for a file in the folder of the run's trial, which the test writes.
std::string until(const char* file) { return fmt::format("while [ ! -e {} ]; do sleep 0.01; done; ", file); }

bool has_refused(const std::vector<ablate::v1::WorkerMessage>& messages, std::uint32_t run) {
  return std::ranges::any_of(messages, [run](const auto& message) {
    return message.has_refused() && message.refused().run() == run;
  });
}

TEST_F(AgentTest, RunsLeasedAheadStartOneAfterTheOtherAsTheirSlotBecomesFree) {
  Worker worker{folder.path(), scheduler.address()};
  const auto order = (folder.path() / "order").string();
  scheduler.assign(shell_assignment(7, "echo 7 >> " + order + "; echo ready; " + until("go")));
  for (const std::uint32_t run : {8U, 9U, 10U})
    scheduler.assign(shell_assignment(run, fmt::format("echo {} >> {}", run, order)));
  ASSERT_TRUE(eventually([&] { return !scheduler.batches(7).empty(); }));
  EXPECT_TRUE(scheduler.heard([](const auto& messages) {
    return messages.back().has_heartbeat() && messages.back().heartbeat().runs_size() == 4;
  })) << "those that wait are kept too";
  for (const char* trial : {"108", "109", "110"})
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "runs" / trial));
  write_text(folder.path() / "runs/107/1/go", "");
  for (const std::uint32_t run : {7U, 8U, 9U, 10U})
    EXPECT_EQ(scheduler.wait_for_end(run).back().ended().status(), RunEnded::STATUS_COMPLETED);
  EXPECT_EQ(read_file(order), "7\n8\n9\n10\n");
  EXPECT_TRUE(eventually([&] { return worker->settled(); }));
  EXPECT_TRUE(is_spool_empty(folder.path()));
}

TEST_F(AgentTest, RunsThatShareASlotAreUnderWayTogetherAndItIsFreeAfterTheLastOfThem) {
  Worker worker{folder.path(), scheduler.address()};
  scheduler.assign(shell_assignment(7, "echo ready; " + until("go")));
  auto packed = shell_assignment(8, "echo ready; " + until("go"));
  packed.set_packed(true);
  scheduler.assign(packed);
  scheduler.assign(shell_assignment(9, kTwoSteps));
  ASSERT_TRUE(eventually([&] { return !scheduler.batches(7).empty() && !scheduler.batches(8).empty(); }));
  scheduler.stop();
  scheduler.start();
  const auto slot = scheduler.hello(2).slots(0);
  EXPECT_EQ(slot.run(), 7u);
  EXPECT_THAT(slot.beside(), ElementsAre(8u));
  write_text(folder.path() / "runs/107/1/go", "");
  scheduler.wait_for_end(7);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "runs/109")) << "one of them is there";
  write_text(folder.path() / "runs/108/1/go", "");
  scheduler.wait_for_end(8);
  EXPECT_EQ(scheduler.wait_for_end(9).back().ended().status(), RunEnded::STATUS_COMPLETED);
}

TEST_F(AgentTest, TheNextRunNeedNotWaitUntilItIsSaidHowTheOneBeforeEnded) {
  Worker worker{folder.path(), scheduler.address(), true, 1, {}, std::chrono::hours{5}};
  scheduler.assign(shell_assignment(7, "sleep 0; exit 0"));  // perhaps because the whole service is to go
  scheduler.assign(shell_assignment(8, kTwoSteps));
  EXPECT_EQ(scheduler.wait_for_end(8).back().ended().status(), RunEnded::STATUS_COMPLETED);
  for (const auto& batch : scheduler.batches(7)) EXPECT_FALSE(batch.has_ended());
  worker->stop("worker is stopping");
  EXPECT_EQ(scheduler.wait_for_end(7).back().ended().status(), RunEnded::STATUS_STOPPED);
}

TEST_F(AgentTest, NoRunTakesASlotForWhichAnEarlierOneWaits) {
  Worker worker{folder.path(), scheduler.address(), true, 2};
  const auto order = (folder.path() / "order").string();
  scheduler.assign(shell_assignment(7, "echo ready; " + until("go")));
  ASSERT_TRUE(eventually([&] { return !scheduler.batches(7).empty(); }));
  auto both = shell_assignment(8, "echo 8 >> " + order);
  both.add_slots(1);
  auto second = shell_assignment(9, "echo 9 >> " + order);
  second.set_slots(0, 1);
  scheduler.assign(both);
  scheduler.assign(second);
  EXPECT_TRUE(scheduler.heard([](const auto& messages) {
    return messages.back().has_heartbeat() && messages.back().heartbeat().runs_size() == 3;
  }));
  write_text(folder.path() / "runs/107/1/go", "");
  scheduler.wait_for_end(8);
  scheduler.wait_for_end(9);
  EXPECT_EQ(read_file(order), "8\n9\n");
}

TEST_F(AgentTest, WhatIsRecalledIsHandedBackUnlessItsProgramHasBeenStarted) {
  Worker worker{folder.path(), scheduler.address()};
  scheduler.assign(shell_assignment(7, "echo ready; " + until("go")));
  scheduler.assign(shell_assignment(8, kTwoSteps));
  ASSERT_TRUE(eventually([&] { return !scheduler.batches(7).empty(); }));
  for (const std::uint32_t run : {7U, 8U}) {
    ablate::v1::SchedulerMessage message;
    message.mutable_stop()->set_run(run);
    message.mutable_stop()->set_reason("recalled");
    message.mutable_stop()->set_only_waiting(true);
    scheduler.say(message);
  }
  const auto ended = scheduler.wait_for_end(8).back().ended();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_STOPPED);
  EXPECT_EQ(ended.reason(), "recalled");
  EXPECT_TRUE(ended.asked());
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "runs/108"));
  write_text(folder.path() / "runs/107/1/go", "");
  EXPECT_EQ(scheduler.wait_for_end(7).back().ended().status(), RunEnded::STATUS_COMPLETED);
}

TEST_F(AgentTest, WhatWaitsForASlotIsHandedBackWhenItsDataAreGone) {
  const auto data = folder.path() / "images";
  write_text(data / "cat/1.jpg", "x");
  Worker worker{folder.path(), scheduler.address(), true, 1, {{"photos", data}}};
  auto assign =
      shell_assignment(7, "echo ready; " + until("go") + "mv ../../../images ../../../away; exit 1");
  assign.set_data("photos");
  scheduler.assign(assign);
  ASSERT_TRUE(eventually([&] { return !scheduler.batches(7).empty(); }));
  assign.set_run(8);
  assign.set_trial(108);
  scheduler.assign(assign);
  scheduler.assign(shell_assignment(9, kTwoSteps));  // which needs none
  write_text(folder.path() / "runs/107/1/go", "");
  EXPECT_EQ(scheduler.wait_for_end(7).back().ended().status(), RunEnded::STATUS_LOST);
  EXPECT_TRUE(scheduler.heard([](const auto& messages) { return has_refused(messages, 8); }));
  EXPECT_EQ(scheduler.wait_for_end(9).back().ended().status(), RunEnded::STATUS_COMPLETED);
  EXPECT_TRUE(scheduler.batches(8).empty());
}

TEST_F(AgentTest, AStoppedRunThatHasNotBegunEndsAsStopped) {
  Worker worker{folder.path(), scheduler.address()};
  scheduler.assign(shell_assignment(7, kEndless));
  ASSERT_TRUE(eventually([&] { return !scheduler.batches(7).empty(); }));
  scheduler.assign(shell_assignment(8, kTwoSteps));
  scheduler.stop_run(8, "cancelled");
  EXPECT_EQ(scheduler.wait_for_end(8).back().ended().status(), RunEnded::STATUS_STOPPED);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "runs/108"));
}

TEST_F(AgentTest, RunsOfDifferentSlotsAreUnderWayTogether) {
  Worker worker{folder.path(), scheduler.address(), true, 2};
  auto first = shell_assignment(7,
                                "while [ ! -e ../../108/1/there ]; do sleep 0.01; done; echo "
                                "'{\"event\":\"end\",\"status\":\"completed\"}'");
  auto second = shell_assignment(8,
                                 "touch there; while [ ! -e ../../107/1 ]; do sleep 0.01; done; echo "
                                 "'{\"event\":\"end\",\"status\":\"completed\"}'");
  second.set_slots(0, 1);
  scheduler.assign(first);
  scheduler.assign(second);
  EXPECT_EQ(scheduler.wait_for_end(7).back().ended().status(), RunEnded::STATUS_COMPLETED);
  EXPECT_EQ(scheduler.wait_for_end(8).back().ended().status(), RunEnded::STATUS_COMPLETED);
}

TEST_F(AgentTest, TheSameAssignmentTwiceIsOneRun) {
  Worker worker{folder.path(), scheduler.address()};
  const auto assign = shell_assignment(7, R"(echo once; echo '{"event":"end","status":"completed"}')");
  scheduler.acknowledge(false);
  scheduler.assign(assign);
  scheduler.assign(assign);
  scheduler.wait_for_end(7);
  scheduler.assign(assign);
  scheduler.assign(shell_assignment(8, kTwoSteps));  // behind the others
  scheduler.wait_for_end(8);
  EXPECT_EQ(log_of(scheduler.batches(7)), "once\n");
}

TEST_F(AgentTest, WhatCannotBeRunHereIsRefusedWithTheReason) {
  Worker worker{folder.path(), scheduler.address(), /*allow_commands=*/false};
  std::vector<std::pair<ablate::v1::Assign, std::string>> cases;
  cases.emplace_back(shell_assignment(1, "touch /tmp/never"), "--allow-commands");
  auto assign = shell_assignment(2, "");
  assign.clear_argv();
  assign.set_data("imagenet-1k");
  cases.emplace_back(assign, "--data imagenet-1k=FOLDER");
  assign.set_run(3);
  assign.set_slots(0, 5);
  cases.emplace_back(assign, "slots 5");
  assign.set_run(4);
  assign.clear_slots();
  cases.emplace_back(assign, "names no slot");
  assign.set_run(5);
  assign.add_slots(0);
  assign.add_slots(0);
  cases.emplace_back(assign, "slots 0, 0");
  assign = shell_assignment(6, "");
  assign.clear_argv();
  assign.add_weights("deit");
  assign.add_weights("regnet");
  cases.emplace_back(assign, "unknown weights 'regnet': start the worker with --weights regnet=FILE");
  for (const auto& [refused, reason] : cases) {
    scheduler.assign(refused);
    EXPECT_TRUE(scheduler.heard([&, run = refused.run(), why = reason](const auto& messages) {
      return std::any_of(messages.begin(), messages.end(), [&](const auto& message) {
        return message.has_refused() && message.refused().run() == run &&
               message.refused().reason().find(why) != std::string::npos && !message.refused().permanent();
      });
    })) << reason;
  }
  EXPECT_TRUE(worker->settled());
}

/// The text of a heartbeat's trouble that a test waits for.
bool says_trouble(const std::vector<ablate::v1::WorkerMessage>& messages, const std::string& what) {
  return std::any_of(messages.begin(), messages.end(), [&](const auto& message) {
    return message.has_heartbeat() && message.heartbeat().trouble().find(what) != std::string::npos;
  });
}

void fill(const std::filesystem::path& disk) {
  std::ofstream filler{disk / "filler", std::ios::binary};
  const std::string block(4096, 'x');
  while (filler << block << std::flush) {
  }
}

TEST_F(AgentTest, AFullDiskLosesItsRunsAndTakesNoneUntilThereIsRoomAgain) {
  SmallDisk disk;
  if (!disk.is_whole())
    GTEST_SKIP() << "no tmpfs may be mounted here: run it as root, or allow user namespaces";
  Worker worker{disk.path(), scheduler.address(), true, 2};
  scheduler.assign(shell_assignment(7, "while :; do seq 20000; sleep 0.01; done"));
  ASSERT_TRUE(eventually([&] { return !scheduler.batches(7).empty(); }));
  fill(disk.path());
  const auto ended = scheduler.wait_for_end(7).back().ended();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_LOST);
  EXPECT_TRUE(ended.worker_trouble());
  EXPECT_THAT(ended.reason(), HasSubstr("No space left on device"));
  const auto messages = scheduler.messages();
  const auto is_end = [](const auto& message) { return message.has_batch() && message.batch().has_ended(); };
  EXPECT_TRUE(says_trouble({messages.begin(), std::find_if(messages.begin(), messages.end(), is_end)},
                           "No space left on device"))
      << "before the run's end, so that its trial does not come back here";

  scheduler.assign(shell_assignment(8, kTwoSteps));
  EXPECT_TRUE(scheduler.heard([](const auto& all) {
    return std::any_of(all.begin(), all.end(), [](const auto& message) {
      return message.has_refused() && message.refused().run() == 8 && !message.refused().permanent() &&
             message.refused().reason().starts_with("worker unhealthy: ");
    });
  }));
  EXPECT_TRUE(eventually([&] { return worker->settled(); }))
      << "what is acknowledged goes also from a full disk";
  EXPECT_TRUE(is_spool_empty(disk.path()));

  disk.free_space();
  EXPECT_TRUE(scheduler.heard([](const auto& all) {
    return std::any_of(all.rbegin(), all.rend(),
                       [](const auto& message) { return message.has_heartbeat(); }) &&
           std::find_if(all.rbegin(), all.rend(), [](const auto& message) { return message.has_heartbeat(); })
               ->heartbeat()
               .trouble()
               .empty();
  }));
  scheduler.assign(shell_assignment(9, kTwoSteps));
  EXPECT_EQ(scheduler.wait_for_end(9).back().ended().status(), RunEnded::STATUS_COMPLETED);
}

TEST_F(AgentTest, AWorkerInTroubleSaysSoInItsHello) {
  SmallDisk disk;
  if (!disk.is_whole())
    GTEST_SKIP() << "no tmpfs may be mounted here: run it as root, or allow user namespaces";
  Worker worker{disk.path(), scheduler.address()};
  scheduler.hello();
  fill(disk.path());
  scheduler.assign(shell_assignment(7, kTwoSteps));
  ASSERT_TRUE(scheduler.heard([](const auto& all) { return says_trouble(all, "No space left"); }));
  scheduler.stop();
  scheduler.start();
  EXPECT_THAT(scheduler.hello(2).trouble(), HasSubstr("No space left on device"));
}

TEST_F(AgentTest, OutOfDescriptorsIsTheWorkersTroubleAndPasses) {
  Worker worker{folder.path(), scheduler.address()};
  scheduler.assign(shell_assignment(7, kTwoSteps));
  ASSERT_EQ(scheduler.wait_for_end(7).back().ended().status(), RunEnded::STATUS_COMPLETED);
  ASSERT_TRUE(eventually([&] { return worker->settled(); }));
  {
    const FewDescriptors few{3};  // enough for a run's spool, and not for its pipes
    scheduler.assign(shell_assignment(8, kTwoSteps));
    EXPECT_TRUE(scheduler.heard([](const auto& all) { return says_trouble(all, "Too many open files"); }));
  }
  for (const RunBatch& batch : scheduler.batches(8))
    EXPECT_NE(batch.ended().status(), RunEnded::STATUS_FAILED) << batch.ended().reason();
  EXPECT_TRUE(eventually([&] {
    const auto all = scheduler.messages();
    return all.back().has_heartbeat() && all.back().heartbeat().trouble().empty();
  }));
  scheduler.assign(shell_assignment(9, kTwoSteps));
  EXPECT_EQ(scheduler.wait_for_end(9).back().ended().status(), RunEnded::STATUS_COMPLETED);
}

TEST_F(AgentTest, DataThatVanishAreNotOfferedUntilTheyAreBack) {
  const auto data = folder.path() / "images";
  write_text(data / "cat/1.jpg", "x");
  Worker worker{folder.path(), scheduler.address(), true, 1, {{"photos", data}}};
  auto assign = shell_assignment(7, "mv ../../../images ../../../away; echo 'cannot read 1.jpg' >&2; exit 1");
  assign.set_data("photos");
  scheduler.assign(assign);
  const auto ended = scheduler.wait_for_end(7).back().ended();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_LOST);
  EXPECT_THAT(ended.reason(),
              AllOf(HasSubstr("data set 'photos' not found: " + data.string() + " does not exist"),
                    HasSubstr("cannot read 1.jpg")));
  const auto last_says_gone = [](const auto& all, std::size_t count) {
    for (auto message = all.rbegin(); message != all.rend(); ++message)
      if (message->has_heartbeat())
        return message->heartbeat().trouble().empty() &&
               message->heartbeat().gone_data().count("photos") == count;
    return false;
  };
  EXPECT_TRUE(scheduler.heard([&](const auto& all) { return last_says_gone(all, 1); }));
  assign.set_run(8);
  scheduler.assign(assign);
  EXPECT_TRUE(scheduler.heard([](const auto& all) {
    return all.back().has_refused() && all.back().refused().reason().find("not found") != std::string::npos;
  }));
  scheduler.assign(shell_assignment(9, kTwoSteps));  // which needs none
  EXPECT_EQ(scheduler.wait_for_end(9).back().ended().status(), RunEnded::STATUS_COMPLETED);
  std::filesystem::rename(folder.path() / "away", data);
  EXPECT_TRUE(scheduler.heard([&](const auto& all) { return last_says_gone(all, 0); }));
}

TEST_F(AgentTest, AFailureWithOtherWeightsThanTheWantedOnesIsTheWorkersTroubleUntilItHasThem) {
  const auto file = folder.path() / "deit.safetensors";
  write_text(file, "other");
  Worker worker{folder.path(), scheduler.address()};
  const auto assign = [](std::uint32_t run, const std::string& script, const std::string& wanted) {
    auto assignment = shell_assignment(run, script);
    assignment.add_weights("deit");
    (*assignment.mutable_weights_sha256())["deit"] = sha256_hex(wanted);
    return assignment;
  };
  const auto last_says_wrong = [](const auto& all, int count) {
    for (auto message = all.rbegin(); message != all.rend(); ++message)
      if (message->has_heartbeat())
        return message->heartbeat().trouble().empty() && message->heartbeat().wrong_weights_size() == count;
    return false;
  };
  scheduler.assign(assign(7, "echo 'it does not fit the model' >&2; exit 2", "right"));
  const auto ended = scheduler.wait_for_end(7).back().ended();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_LOST);
  EXPECT_TRUE(ended.worker_trouble());
  EXPECT_THAT(ended.reason(),
              AllOf(HasSubstr("weights 'deit' not usable: " + file.string() + " has the SHA-256 " +
                              sha256_hex("other") + "; expected " + sha256_hex("right")),
                    HasSubstr("it does not fit the model")));
  EXPECT_TRUE(scheduler.heard([&](const auto& all) { return last_says_wrong(all, 1); }));
  scheduler.assign(assign(8, kTwoSteps, "right"));
  EXPECT_TRUE(scheduler.heard([](const auto& all) {
    return all.back().has_refused() && all.back().refused().reason().find("not usable") != std::string::npos;
  }));
  scheduler.assign(assign(9, kTwoSteps, "other"));  // the same name may stand for this file
  EXPECT_EQ(scheduler.wait_for_end(9).back().ended().status(), RunEnded::STATUS_COMPLETED);
  write_text(file, "right");
  EXPECT_TRUE(scheduler.heard([&](const auto& all) { return last_says_wrong(all, 0); }));
  scheduler.assign(assign(10, "exit 2", "right"));
  EXPECT_EQ(scheduler.wait_for_end(10).back().ended().status(), RunEnded::STATUS_FAILED) << "its own";
}

TEST_F(AgentTest, WeightsOfAFencedRunThatAreOthersAreSaidUntilTheyAreTheWantedOnes) {
  const auto file = folder.path() / "deit.safetensors";
  write_text(file, "other");
  Worker worker{folder.path(), scheduler.address()};
  auto assign = shell_assignment(7, kEndless);  // they do well
  assign.add_weights("deit");
  (*assign.mutable_weights_sha256())["deit"] = sha256_hex("right");
  scheduler.assign(assign);
  ASSERT_TRUE(eventually([&] { return !scheduler.batches(7).empty(); }));
  scheduler.fence(7);
  const auto last_says_wrong = [](const auto& all, int count) {
    return all.back().has_heartbeat() && all.back().heartbeat().wrong_weights_size() == count;
  };
  EXPECT_TRUE(scheduler.heard([&](const auto& all) { return last_says_wrong(all, 1); }));
  write_text(file, "right");
  EXPECT_TRUE(scheduler.heard([&](const auto& all) { return last_says_wrong(all, 0); }));
  assign.set_run(8);
  scheduler.assign(assign);
  EXPECT_TRUE(eventually([&] { return !scheduler.batches(8).empty(); }));
}

TEST_F(AgentTest, ARunWithALongBacklogDoesNotDelayTheOthers) {
  scheduler.acknowledge(false);
  {
    SpoolFiles files{folder.path() / "spool"};
    RunSpool dead{files, 7, "token"};
    RunBatch batch;
    batch.set_log(std::string(60'000, 'x'));
    for (int i = 0; i < 500; ++i) dead.append(batch);
  }
  Worker worker{folder.path(), scheduler.address()};
  scheduler.assign(shell_assignment(8, kTwoSteps));
  scheduler.wait_for_end(8);  // though nothing is acknowledged
  EXPECT_LE(scheduler.batches(7).size(), 64U);
}

TEST_F(AgentTest, ACommandWhoseFolderIsNotHereIsRefusedSoThatAnotherWorkerMayRunIt) {
  Worker worker{folder.path(), scheduler.address()};
  auto assign = shell_assignment(1, "exit 0");
  assign.set_folder("/no/such/folder");
  scheduler.assign(assign);
  EXPECT_TRUE(scheduler.heard([](const auto& messages) {
    const auto& refused = messages.back().refused();
    return refused.run() == 1 && !refused.permanent() &&
           refused.reason() == "missing working folder /no/such/folder of the command";
  }));
}

TEST_F(AgentTest, AStoppingWorkerStopsItsRunsAndTakesNothingMore) {
  Worker worker{folder.path(), scheduler.address()};
  scheduler.assign(shell_assignment(7, kEndless));
  ASSERT_TRUE(eventually([&] { return !scheduler.batches(7).empty(); }));
  worker->stop("worker is stopping");
  const auto ended = scheduler.wait_for_end(7).back().ended();
  EXPECT_EQ(ended.status(), RunEnded::STATUS_STOPPED);
  EXPECT_THAT(ended.reason(), HasSubstr("worker is stopping"));
  scheduler.assign(shell_assignment(8, kTwoSteps));
  EXPECT_TRUE(scheduler.heard([](const auto& messages) {
    return messages.back().has_refused() && messages.back().refused().run() == 8;
  }));
}

}  // namespace
}  // namespace abl::agent
