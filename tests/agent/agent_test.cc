// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/agent.h"

#include <gmock/gmock.h>

#include <atomic>

#include "tests/agent/fake_scheduler.h"

namespace abl::agent {
namespace {

using ablate::v1::RunBatch;
using ablate::v1::RunEnded;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

/// A worker with one slot, whose tick is called as its program would.
class Worker {
 public:
  Worker(const std::filesystem::path& folder, const std::string& address, bool allow_commands = true,
         std::size_t slots = 1) {
    AgentOptions options;
    options.scheduler = address;
    options.spool = folder / "spool";
    options.name = "worker-1";
    options.version = "0.1.0";
    options.result_version = 3;
    options.allow_commands = allow_commands;
    options.slots.assign(slots, Slot{.device = "cpu", .name = "2 threads", .threads = 2, .visible = {}});
    options.runs.runs_root = folder / "runs";
    options.runs.trainer = folder / "trainer";
    options.runs.data = {{"shapes", ""}, {"cifar10", folder}};
    options.runs.host = "here";
    options.runs.grace = Milliseconds{10000};
    options.backoff = {.first = Milliseconds{10}, .longest = Milliseconds{50}};
    agent_ = std::make_unique<Agent>(std::move(options), clock_);
    ticker_ = std::jthread{[this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        agent_->tick();
        std::this_thread::sleep_for(std::chrono::milliseconds{10});
      }
    }};
  }
  ~Worker() {
    ticker_.request_stop();
    ticker_.join();
  }
  Agent* operator->() { return agent_.get(); }

 private:
  SystemClock clock_;
  std::unique_ptr<Agent> agent_;
  std::jthread ticker_;
};

class AgentTest : public testing::Test {
 protected:
  TemporaryFolder folder;
  FakeScheduler scheduler{folder.path()};
  std::filesystem::path spool(std::uint32_t run) const {
    return folder.path() / "spool" / std::to_string(run);
  }
};

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
  EXPECT_FALSE(std::filesystem::exists(spool(7))) << "what is acknowledged need not be kept";
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
  ASSERT_EQ(hello.slots_size(), 1);
  EXPECT_EQ(hello.slots(0).threads(), 2);
  EXPECT_FALSE(hello.instance().empty());
}

}  // namespace
}  // namespace abl::agent
