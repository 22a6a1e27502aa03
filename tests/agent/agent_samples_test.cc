// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/agent/agent_fixture.h"

namespace abl::agent {
namespace {

/// What heartbeats say of what a run takes.
std::vector<ablate::v1::ResourceSample> samples_of(const std::vector<ablate::v1::WorkerMessage>& messages,
                                                   std::uint32_t run, const std::string& token) {
  std::vector<ablate::v1::ResourceSample> samples;
  for (const auto& message : messages)
    for (const auto& resources : message.heartbeat().resources())
      if (resources.run() == run && resources.token() == token)
        samples.insert(samples.end(), resources.samples().begin(), resources.samples().end());
  return samples;
}

TEST_F(AgentTest, HeartbeatsSayWhatRunsTakeAndSayItAgainWhereItMayBeLost) {
  Worker worker{folder.path(), scheduler.address()};
  auto assign = shell_assignment(7, "while [ ! -e gate ]; do :; done");
  assign.set_token("abc");
  scheduler.assign(assign);
  ASSERT_TRUE(
      scheduler.heard([](const auto& messages) { return samples_of(messages, 7, "abc").size() >= 5; }));
  const auto first = samples_of(scheduler.messages(), 7, "abc");
  EXPECT_TRUE(std::ranges::any_of(first, [](const auto& sample) { return sample.cpu_cores() > 0; }));
  EXPECT_GT(first.back().memory_bytes(), 0U);
  scheduler.stop();
  scheduler.forget();
  scheduler.start();
  ASSERT_TRUE(scheduler.heard([&](const auto& messages) {
    return std::ranges::any_of(samples_of(messages, 7, "abc"),
                               [&](const auto& sample) { return sample.at_ms() == first.back().at_ms(); });
  })) << "what left before the session broke leaves once more";
  write_text(folder.path() / "runs/107/1/gate", "");
  scheduler.wait_for_end(7);
  EXPECT_TRUE(eventually([&] { return worker->settled(); })) << "no sample keeps a run";
}

}  // namespace
}  // namespace abl::agent
