// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/resource_buffer.h"

#include <gmock/gmock.h>

namespace abl::agent {
namespace {

using namespace std::chrono_literals;
using ablate::v1::ResourceSample;
using testing::ElementsAre;

ResourceSample sample(std::uint64_t at_s, double cpu = 1) {
  ResourceSample sample;
  sample.set_at_ms(at_s * 1000);
  sample.set_over_ms(2000);
  sample.set_cpu_cores(cpu);
  sample.set_memory_bytes(at_s);
  return sample;
}

class ResourceBufferTest : public testing::Test {
 protected:
  std::vector<std::uint64_t> take(ResourceBuffer& buffer, ResourceBuffer::SteadyTime now) {
    std::vector<std::uint64_t> seconds;
    for (const auto& run : buffer.take(now))
      for (const auto& each : run.samples()) seconds.push_back(each.at_ms() / 1000);
    return seconds;
  }
  const ResourceBuffer::SteadyTime start{1h};
  ResourceBuffer buffer;
};

TEST_F(ResourceBufferTest, AFewSamplesLeaveTogether) {
  buffer.add(7, "t", sample(2), start);
  EXPECT_THAT(take(buffer, start + 1s), ElementsAre());
  buffer.add(7, "t", sample(4), start + 2s);
  EXPECT_THAT(take(buffer, start + 5s), ElementsAre(2, 4));
  EXPECT_THAT(take(buffer, start + 6s), ElementsAre()) << "once";
}

TEST_F(ResourceBufferTest, WhatARunThatHasEndedLeftLeavesAtOnce) {
  buffer.add(7, "t", sample(2), start);
  buffer.end(7, "t");
  EXPECT_THAT(take(buffer, start), ElementsAre(2));
}

TEST_F(ResourceBufferTest, WhatLeftBeforeASessionBrokeLeavesOnceMore) {
  buffer.add(7, "t", sample(2), start);
  take(buffer, start + 5s);
  buffer.begin_session(start + 10s);
  EXPECT_THAT(take(buffer, start + 10s), ElementsAre(2));
  buffer.begin_session(start + 10min);
  EXPECT_THAT(take(buffer, start + 10min), ElementsAre()) << "a session that lived so long has brought it";
  EXPECT_EQ(buffer.size(), 0U);
}

TEST_F(ResourceBufferTest, ARunOfAnotherResultsFileIsAnother) {
  buffer.add(7, "one", sample(2), start);
  buffer.add(7, "two", sample(3), start);
  const auto left = buffer.take(start + 5s);
  ASSERT_EQ(left.size(), 2U);
  EXPECT_EQ(left[0].token(), "one");
  EXPECT_EQ(left[1].token(), "two");
}

TEST_F(ResourceBufferTest, WhileNobodyTakesThemSamplesGetCoarserAndNoneIsLost) {
  ResourceBuffer small{10};
  for (std::uint64_t i = 1; i <= 1000; ++i) small.add(7, "t", sample(2 * i, i <= 500 ? 1 : 3), start);
  EXPECT_LE(small.size(), 10U);
  std::uint64_t over = 0, last = 0;
  double cpu = 0;
  for (const auto& run : small.take(start + 1h))
    for (const auto& each : run.samples()) {
      over += each.over_ms();
      cpu += each.cpu_cores() * each.over_ms();
      last = each.at_ms();
    }
  EXPECT_EQ(over, 2'000'000U) << "all of the time";
  EXPECT_NEAR(cpu / static_cast<double>(over), 2, 1e-9);
  EXPECT_EQ(last, 2'000'000U);
}

TEST_F(ResourceBufferTest, ItIsBoundedHoweverManyRunsThereAre) {
  ResourceBuffer small{10};
  for (std::uint32_t run = 1; run <= 1000; ++run) small.add(run, "t", sample(2), start);
  EXPECT_LE(small.size(), 10U);
}

TEST_F(ResourceBufferTest, AHeartbeatHasABound) {
  for (std::uint64_t i = 1; i <= 1200; ++i) buffer.add(7, "t", sample(i), start);
  EXPECT_EQ(take(buffer, start + 5s).size(), ResourceBuffer::kMostTogether);
  EXPECT_EQ(take(buffer, start + 5s).size(), ResourceBuffer::kMostTogether);
  EXPECT_EQ(take(buffer, start + 5s).size(), 200U);
}

TEST(MergedSampleTest, WhatIsKnownOfOneAloneIsThatOnes) {
  ResourceSample first = sample(2), second;
  second.set_at_ms(6000);
  second.set_over_ms(4000);
  second.set_gpu(0.5);
  second.set_data_wait_ms(1);
  second.set_data_of_ms(10);
  const auto both = merged(first, second);
  EXPECT_EQ(both.at_ms(), 6000U);
  EXPECT_EQ(both.over_ms(), 6000U);
  EXPECT_EQ(both.cpu_cores(), 1);
  EXPECT_EQ(both.gpu(), 0.5);
  EXPECT_EQ(both.data_of_ms(), 10U);
  EXPECT_FALSE(both.has_free_bytes());
  EXPECT_FALSE(both.has_read_bytes_per_s());
}

}  // namespace
}  // namespace abl::agent
