// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/session.h"

#include <atomic>
#include <semaphore>
#include <thread>

#include "tests/agent/fake_scheduler.h"

namespace abl::agent {
namespace {

using ablate::v1::SchedulerMessage;
using ablate::v1::WorkerMessage;

/// Says hello after a while, heartbeats without end, and fails when a test says so.
class TestPeer final : public Peer {
 public:
  ablate::v1::Hello hello() override {
    std::this_thread::sleep_for(pause);
    ++hellos;
    ablate::v1::Hello hello;
    hello.set_name("worker-1");
    return hello;
  }
  std::optional<WorkerMessage> next() override {
    if (fails.exchange(false)) throw std::bad_alloc{};
    WorkerMessage message;
    message.mutable_heartbeat();
    return message;
  }
  void receive(const SchedulerMessage&) override {}

  std::chrono::milliseconds pause{0};
  std::atomic<int> hellos = 0;
  std::atomic<bool> fails = false;
};

constexpr Backoff kQuick{.first = Milliseconds{1}, .longest = Milliseconds{2}};

TEST(Session, NothingIsWrittenOnACallThatIsOverBeforeItsHello) {
  const TemporaryFolder folder;
  TestPeer peer;
  peer.pause = std::chrono::milliseconds{30};  // longer than a Unix socket takes to refuse
  Session session{"unix:" + (folder / "nobody-listens.sock").string(), peer, kQuick};
  session.start();
  EXPECT_TRUE(eventually([&] { return peer.hellos >= 20; }));
  EXPECT_FALSE(session.connected());
}

TEST(Session, ASchedulerThatComesAndGoesWhileTheWorkerSpeaksIsJoinedAgain) {
  const TemporaryFolder folder;
  FakeScheduler scheduler{folder.path()};
  TestPeer peer;
  Session session{scheduler.address(), peer, kQuick};
  session.start();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(eventually([&] { return session.connected(); }));
    scheduler.stop();
    scheduler.start();
  }
  ASSERT_TRUE(eventually([&] { return session.connected(); }));
  session.close();
}

TEST(Session, APeerThatFailsBreaksTheConnectionAndNotTheWorker) {
  const TemporaryFolder folder;
  FakeScheduler scheduler{folder.path()};
  TestPeer peer;
  Session session{scheduler.address(), peer, kQuick};
  session.start();
  ASSERT_TRUE(eventually([&] { return session.connected(); }));
  peer.fails = true;
  EXPECT_TRUE(eventually([&] { return peer.hellos >= 2 && session.connected(); }));
}

/// Is asked for a message on a thread that is slow to answer, until the test says so.
class SlowPeer final : public Peer {
 public:
  ablate::v1::Hello hello() override {
    if (is_asked) ++hellos_while_asked;
    ++hellos;
    return {};
  }
  std::optional<WorkerMessage> next() override {
    if (std::this_thread::get_id() != slow) return std::nullopt;
    is_asked = true;
    may_answer.acquire();
    is_asked = false;
    return std::nullopt;
  }
  void receive(const SchedulerMessage&) override {}

  std::atomic<std::thread::id> slow{};
  std::atomic<bool> is_asked = false;
  std::atomic<int> hellos = 0, hellos_while_asked = 0;
  std::binary_semaphore may_answer{0};
};

TEST(Session, WhatIsAskedForInOneSessionIsNotTakenFromTheNext) {
  const TemporaryFolder folder;
  FakeScheduler scheduler{folder.path()};
  SlowPeer peer;
  Session session{scheduler.address(), peer, kQuick};
  session.start();
  ASSERT_TRUE(eventually([&] { return session.connected(); }));
  std::jthread run{[&] {
    peer.slow = std::this_thread::get_id();
    while (!peer.is_asked && peer.hellos == 1) session.flush();
  }};
  ASSERT_TRUE(eventually([&] { return peer.is_asked.load(); }));
  scheduler.stop();
  scheduler.start();
  // it would come at once, many times over, were it not to wait
  for (int i = 0; i < 100 && peer.hellos_while_asked == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  EXPECT_EQ(peer.hellos_while_asked, 0);
  peer.slow = std::thread::id{};
  peer.may_answer.release();
  EXPECT_TRUE(eventually([&] { return peer.hellos == 2 && session.connected(); }));
}

}  // namespace
}  // namespace abl::agent
