// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "tests/agent/fake_scheduler.h"
#include "worker/agent/agent.h"

namespace abl::agent {

/// A worker with one slot, whose tick is called as its program would.
class Worker {
 public:
  Worker(const std::filesystem::path& folder, const std::string& address, bool allow_commands = true,
         std::size_t slots = 1, const std::map<std::string, std::filesystem::path>& data = {},
         Milliseconds afterthought = Milliseconds{500}) {
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
    options.runs.data.insert(data.begin(), data.end());
    options.runs.weights = {{"deit", folder / "deit.safetensors"}};
    options.runs.host = "here";
    options.runs.grace = Milliseconds{10000};
    options.runs.afterthought = afterthought;
    options.backoff = {.first = Milliseconds{10}, .longest = Milliseconds{50}};
    options.first_probe = Milliseconds{20};
    options.longest_probe = Milliseconds{50};
    options.sample_every = Milliseconds{50};
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
  /// Whether the worker keeps nothing of any run.
  static bool is_spool_empty(const std::filesystem::path& home) {
    return std::ranges::all_of(std::filesystem::directory_iterator{home / "spool"}, [](const auto& entry) {
      return entry.is_regular_file() && entry.file_size() == 0;
    });
  }
};

}  // namespace abl::agent
