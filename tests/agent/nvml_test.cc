// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/resource_sampler.h"

#include <gtest/gtest.h>

namespace abl::agent {
namespace {

TEST(NvmlTest, GpusAreAskedByWhatCudaVisibleDevicesCallsThem) {
  Nvml nvml{FAKE_NVML};
  EXPECT_EQ(nvml.utilisation("0"), 0.87);
  EXPECT_EQ(nvml.utilisation("GPU-0"), 0.87);
  EXPECT_EQ(nvml.memory_taken("0"), 20U);
}

TEST(NvmlTest, WhatAGpuRefusesIsAbsent) {
  Nvml nvml{FAKE_NVML};
  EXPECT_FALSE(nvml.utilisation("1"));
  EXPECT_FALSE(nvml.memory_taken("1"));
  EXPECT_FALSE(nvml.utilisation("MIG-0")) << "a part of a GPU has no share of time";
  EXPECT_EQ(nvml.memory_taken("MIG-0"), 20U);
  EXPECT_FALSE(nvml.utilisation("2"));
  EXPECT_FALSE(nvml.utilisation("GPU-of-another-machine"));
}

TEST(NvmlTest, WithoutADriverAllIsAbsent) {
  Nvml nvml{"libnvidia-ml.so.of-no-machine"};
  EXPECT_FALSE(nvml.utilisation("0"));
  EXPECT_FALSE(nvml.memory_taken("0"));
}

}  // namespace
}  // namespace abl::agent
