// SPDX-License-Identifier: Apache-2.0
// What heartbeats say of what runs take of their machines.
#include <cmath>

#include "storage/resource_store.h"
#include "tests/scheduler/fixtures.h"

namespace abl::scheduler {
namespace {

using testing::Contains;
using testing::SizeIs;

class ResourceReportsTest : public CoordinatorTest {
 protected:
  void SetUp() override {
    submit(sweep_of("s", 1, 1));
    worker = connect();
    say(worker, started(1, 1));
  }
  ablate::v1::ResourceSample sample(std::uint64_t at_s, double cpu = 1) {
    ablate::v1::ResourceSample sample;
    sample.set_at_ms(at_s * 1000);
    sample.set_over_ms(2000);
    sample.set_cpu_cores(cpu);
    return sample;
  }
  void tell(FakeWorker& by, std::uint32_t run, const std::vector<ablate::v1::ResourceSample>& samples,
            const std::vector<std::uint32_t>& under_way = {1}, std::optional<std::string> token = {}) {
    ablate::v1::WorkerMessage message;
    auto& heartbeat = *message.mutable_heartbeat();
    heartbeat.mutable_runs()->Add(under_way.begin(), under_way.end());
    auto& resources = *heartbeat.add_resources();
    resources.set_run(run);
    resources.set_token(token.value_or(this->run(1).token));
    for (const auto& each : samples) *resources.add_samples() = each;
    coordinator->receive(by.session, message);
    settle();
    by.look();
  }
  std::vector<storage::ResourceSample> stored(storage::RunId id = 1) {
    return read([&](storage::Database& db) {
      return storage::ResourceStore{db}.of(id, 0, std::numeric_limits<std::int64_t>::max());
    });
  }
  FakeWorker worker;
};

TEST_F(ResourceReportsTest, SamplesAreStoredOnceAndWatchersHearOfThem) {
  std::mutex mutex;
  std::set<storage::Change> heard;
  const auto subscription = feed.subscribe([&](const std::set<storage::Change>& changes) {
    const std::scoped_lock lock{mutex};
    heard.insert(changes.begin(), changes.end());
  });
  tell(worker, 1, {sample(2), sample(4)});
  tell(worker, 1, {sample(4), sample(6)});
  EXPECT_THAT(stored(), SizeIs(3));
  const auto is_told = [&] {
    const std::scoped_lock lock{mutex};
    return heard.contains({.sweep = "s", .run = 1});
  };
  for (int i = 0; i < 6000 && !is_told(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(is_told());
}

TEST_F(ResourceReportsTest, TheRestOfARunThatHasEndedIsStored) {
  say(worker, measured(1, 2, 80));
  say(worker, ended(1, 3));
  tell(worker, 1, {sample(2)}, {});
  EXPECT_THAT(stored(), SizeIs(1));
}

TEST_F(ResourceReportsTest, WhatIsOfNoRunOfThisWorkerIsLeftOut) {
  tell(worker, 1, {sample(2)}, {1}, "of another results file");
  tell(worker, 77, {sample(2)});
  FakeWorker other = connect({.name = "other"});
  tell(other, 1, {sample(2)}, {});
  EXPECT_THAT(stored(), SizeIs(0));
  EXPECT_FALSE(worker.channel->closed() || other.channel->closed());
  EXPECT_EQ(run(1).state, storage::RunState::kRunning);
}

TEST_F(ResourceReportsTest, ASampleThatNoMachineCanHaveIsLeftOutAlone) {
  auto wait = sample(14);
  wait.set_data_of_ms(5);
  wait.set_data_wait_ms(6);
  auto gpu = sample(16);
  gpu.set_gpu(1.5);
  tell(worker, 1,
       {sample(2), sample(4, NAN), sample(6, -1), sample(8, INFINITY), sample(10, 1e300), wait, gpu,
        sample(std::uint64_t{1} << 60), sample(12)});
  EXPECT_THAT(stored(), SizeIs(2));
}

TEST_F(ResourceReportsTest, SamplesRenewNoLeaseAndCostNone) {
  for (std::uint32_t i = 1; i <= 10; ++i) {
    pass(5s);
    tell(worker, 1, {sample(i)});
  }
  EXPECT_EQ(run(1).state, storage::RunState::kRunning);
  for (std::uint32_t i = 11; i <= 30; ++i) {
    pass(5s);
    tell(worker, 1, {sample(i)}, /*under_way=*/{});
  }
  EXPECT_NE(run(1).state, storage::RunState::kRunning) << "a run that is not named is not renewed";
}

}  // namespace
}  // namespace abl::scheduler
