// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/workers.pb.h"
#include "base/guarded.h"

namespace abl::agent {

/// One sample for two that followed each other: means over the time of both, the more memory, the less room.
ablate::v1::ResourceSample merged(const ablate::v1::ResourceSample& first,
                                  const ablate::v1::ResourceSample& second);

/// Samples of runs until their scheduler has them. They leave with heartbeats, a few of a run together, so
/// that storing them costs little. Heartbeats are not acknowledged: what left a while before a session broke
/// leaves once more with the next. While the scheduler is away two samples become one where there are too
/// many: it gets a coarser picture, of all the time. Thread: any.
class ResourceBuffer {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;
  static constexpr std::size_t kMost = 20'000;           ///< samples, about 3 MB
  static constexpr std::size_t kMostTogether = 500;      ///< of a heartbeat
  static constexpr std::chrono::seconds kGather{5};      ///< that the first of a run waits for others
  static constexpr std::chrono::seconds kMaybeLost{30};  ///< after they left

  explicit ResourceBuffer(std::size_t most = kMost) : most_{most} {}

  void add(std::uint32_t run, const std::string& token, ablate::v1::ResourceSample sample, SteadyTime now);
  /// Nothing more comes of this run: the next heartbeat has the rest.
  void end(std::uint32_t run, const std::string& token);
  /// What is to leave now.
  std::vector<ablate::v1::RunResources> take(SteadyTime now);
  /// A session begins.
  void begin_session(SteadyTime now);
  std::size_t size() const { return state_.lock()->size; }

 private:
  struct Waiting {
    ablate::v1::ResourceSample sample;
    SteadyTime since;
    std::optional<SteadyTime> left{};
  };
  struct OfRun {
    std::deque<Waiting> samples;  ///< those that left before those that wait
    bool ended = false;
  };
  using Key =
      std::pair<std::uint32_t, std::string>;  ///< run and token: another results file has the same run
  struct State {
    std::map<Key, OfRun> runs;
    std::size_t size = 0;
  };
  static void forget(State& state, SteadyTime now);
  void make_room(State& state) const;

  const std::size_t most_;
  mutable Guarded<State> state_;
};

}  // namespace abl::agent
