// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/resource_sampler.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <mutex>

#include "base/child_process.h"
#include "tests/agent/fake_scheduler.h"

namespace abl::agent {
namespace {

using namespace std::chrono_literals;
using ablate::v1::ResourceSample;

TEST(SampleIntervalTest, ARunOfAWeekHasAFewThousandSamples) {
  EXPECT_EQ(sample_interval(0ms, 2s), 2s);
  EXPECT_EQ(sample_interval(20min, 2s), 2s);
  EXPECT_EQ(sample_interval(std::chrono::hours{10}, 2s), 60s);
  int samples = 0;
  for (Milliseconds age{0}; age < std::chrono::weeks{1}; age += sample_interval(age, 2s)) ++samples;
  EXPECT_GT(samples, 1000);
  EXPECT_LT(samples, 5000);
}

class ResourceSamplerTest : public testing::Test {
 protected:
  std::vector<ResourceSample> of(std::uint32_t run) {
    const std::scoped_lock lock{mutex};
    return taken[run];
  }
  bool has_ended(std::uint32_t run) {
    const std::scoped_lock lock{mutex};
    return std::ranges::find(ended, run) != ended.end();
  }
  TemporaryFolder folder;
  std::mutex mutex;
  std::map<std::uint32_t, std::vector<ResourceSample>> taken;
  std::vector<std::uint32_t> ended;
  ResourceSampler sampler{{.add =
                               [this](std::uint32_t run, const std::string&, ResourceSample sample) {
                                 const std::scoped_lock lock{mutex};
                                 taken[run].push_back(std::move(sample));
                               },
                           .end =
                               [this](std::uint32_t run, const std::string&) {
                                 const std::scoped_lock lock{mutex};
                                 ended.push_back(run);
                               }},
                          20ms};
};

TEST_F(ResourceSamplerTest, ARunIsSampledAsLongAsItIsWatched) {
  const ChildProcess child{{.argv = {"sh", "-c", "while :; do :; done"}}};
  auto watch = sampler.watch({.run = 7, .leader = child.pid(), .directory = folder.path()});
  ASSERT_TRUE(eventually([&] {
    const auto samples = of(7);
    return std::ranges::any_of(samples, [](const auto& sample) { return sample.cpu_cores() > 0; }) &&
           samples.size() >= 3;
  }));
  watch.reset();
  EXPECT_TRUE(has_ended(7));
  const auto samples = of(7);
  std::uint64_t over = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    over += samples[i].over_ms();
    EXPECT_GT(samples[i].memory_bytes(), 0U);
    EXPECT_TRUE(samples[i].has_free_bytes());
    EXPECT_FALSE(samples[i].has_gpu()) << "it has none";
    EXPECT_FALSE(samples[i].has_data_of_ms()) << "it reports none";
    if (i > 0) {
      EXPECT_GT(samples[i].at_ms(), samples[i - 1].at_ms());
    }
  }
  EXPECT_NEAR(static_cast<double>(over), static_cast<double>(samples.back().at_ms()),
              5 + static_cast<double>(samples.size()))
      << "together they are of all the time since its start";
  sampler.watch({.run = 8, .leader = child.pid(), .directory = folder.path()});
  EXPECT_EQ(of(7).size(), samples.size());
}

TEST_F(ResourceSamplerTest, WhatTheTrainerReportsIsInTheNextSample) {
  const ChildProcess child{{.argv = {"sleep", "1000"}}};
  const auto watch = sampler.watch({.run = 7, .leader = child.pid(), .directory = folder.path()});
  watch->waited({.waited = Seconds{0.5}, .of = Seconds{2}});
  watch->waited({.waited = Seconds{0.25}, .of = Seconds{1}});
  const auto reported = [](const auto& sample) { return sample.has_data_of_ms(); };
  ASSERT_TRUE(eventually([&] { return std::ranges::any_of(of(7), reported); }));
  const auto all = of(7);
  std::uint32_t waited = 0, time = 0;
  for (const auto& sample : all) waited += sample.data_wait_ms(), time += sample.data_of_ms();
  EXPECT_EQ(waited, 750U);
  EXPECT_EQ(time, 3000U);
}

TEST_F(ResourceSamplerTest, ARunWhoseProcessesAreGoneHasNoSample) {
  pid_t gone = 0;
  {
    const ChildProcess child{{.argv = {"true"}}};
    gone = child.pid();
  }
  const auto watch = sampler.watch({.run = 7, .leader = gone, .directory = folder.path()});
  const ChildProcess child{{.argv = {"sleep", "1000"}}};
  const auto other = sampler.watch({.run = 8, .leader = child.pid(), .directory = folder.path()});
  ASSERT_TRUE(eventually([&] { return of(8).size() >= 3; }));
  EXPECT_TRUE(of(7).empty());
}

TEST_F(ResourceSamplerTest, AHundredRunsAreSampledTogether) {
  std::vector<std::unique_ptr<ChildProcess>> children;
  std::vector<std::unique_ptr<ResourceSampler::Watch>> watches;
  for (std::uint32_t run = 1; run <= 100; ++run) {
    children.push_back(std::make_unique<ChildProcess>(ChildOptions{.argv = {"sleep", "1000"}, .grace = 0ms}));
    watches.push_back(
        sampler.watch({.run = run, .leader = children.back()->pid(), .directory = folder.path()}));
  }
  ASSERT_TRUE(eventually([&] {
    for (std::uint32_t run = 1; run <= 100; ++run)
      if (of(run).size() < 2) return false;
    return true;
  }));
}

}  // namespace
}  // namespace abl::agent
