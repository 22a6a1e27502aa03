// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/slots.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace abl::agent {
namespace {

const std::vector<Gpu> kTwoGpus{{.index = "0", .name = "NVIDIA H200"}, {.index = "1", .name = "NVIDIA A100"}};

TEST(Slots, WithoutGpusEveryTwoCoresAreASlot) {
  const auto slots = plan_slots({.cores = 9, .gpus = {}, .visible = {}}, 0, 0);
  ASSERT_EQ(slots.size(), 4U);
  EXPECT_EQ(slots[3].device, "cpu");
  EXPECT_EQ(slots[3].threads, 2);
  EXPECT_EQ(slots[3].name, "2 threads");
  EXPECT_EQ(plan_slots({.cores = 1, .gpus = {}, .visible = {}}, 0, 0).size(), 1U);
}

TEST(Slots, AskedForNumbersAreKept) {
  auto slots = plan_slots({.cores = 8, .gpus = {}, .visible = {}}, 2, 0);
  ASSERT_EQ(slots.size(), 2U);
  EXPECT_EQ(slots[0].threads, 4);
  slots = plan_slots({.cores = 8, .gpus = {}, .visible = {}}, 3, 1);
  ASSERT_EQ(slots.size(), 3U);
  EXPECT_EQ(slots[0].name, "1 thread");
  EXPECT_EQ(plan_slots({.cores = 1, .gpus = {}, .visible = {}}, 4, 0)[0].threads, 1);
  EXPECT_THROW(plan_slots({.cores = 1, .gpus = {}, .visible = {}}, -1, 0), Error);
  EXPECT_THROW(plan_slots({.cores = 1, .gpus = {}, .visible = {}}, 0, -1), Error);
}

TEST(Slots, EachGpuIsASlotWithItsShareOfTheCores) {
  const auto slots = plan_slots({.cores = 16, .gpus = kTwoGpus, .visible = {}}, 0, 0);
  ASSERT_EQ(slots.size(), 2U);
  EXPECT_EQ(slots[1].device, "cuda:1");
  EXPECT_EQ(slots[1].name, "NVIDIA A100");
  EXPECT_EQ(slots[1].visible, "1");
  EXPECT_EQ(slots[1].threads, 8);
  EXPECT_EQ(plan_slots({.cores = 16, .gpus = kTwoGpus, .visible = {}}, 1, 3).size(), 1U);
}

TEST(Slots, CudaVisibleDevicesIsRespected) {
  const auto slots = [](const std::string& visible) {
    return plan_slots({.cores = 4, .gpus = kTwoGpus, .visible = visible}, 0, 0);
  };
  EXPECT_EQ(slots("1").size(), 1U);
  EXPECT_EQ(slots("1")[0].device, "cuda:0");
  EXPECT_EQ(slots("1")[0].name, "NVIDIA A100");
  EXPECT_EQ(slots("1, 0")[1].visible, "0");
  EXPECT_EQ(slots("GPU-8932f937")[0].visible, "GPU-8932f937");
  EXPECT_EQ(slots("0,-1,1").size(), 1U) << "the list ends at the first entry that is no device";
  EXPECT_EQ(slots("")[0].device, "cpu");
}

TEST(Slots, NvidiaSmisListIsRead) {
  const auto gpus = parse_gpus("0, NVIDIA H200\n1, NVIDIA A100-SXM4-40GB\n\n");
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[1].index, "1");
  EXPECT_EQ(gpus[1].name, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(gpus[1].memory, 0u) << "of a driver that does not say";
  EXPECT_TRUE(parse_gpus("No devices were found\n").empty());
  EXPECT_EQ(parse_gpus("0, NVIDIA H200, 143771\n")[0].memory, 143'771ull << 20);
  EXPECT_EQ(parse_gpus("0, NVIDIA GB10, [N/A]\n")[0].memory, 0u);
}

}  // namespace
}  // namespace abl::agent
