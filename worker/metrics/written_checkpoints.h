// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace abl::metrics {

/// Checkpoints that a program writes into the run's folder and does not speak of: the files that a path with
/// `*` and `?` names, the newest counts. One is whole once nothing has changed it for a while, or nobody is
/// left who would. Thread: one.
class WrittenCheckpoints {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kQuiet{2};

  /// `pattern`: empty for a program that has none.
  WrittenCheckpoints(std::filesystem::path folder, std::string pattern);

  struct Written {
    std::filesystem::path file;
    std::uint32_t step = 0;  ///< that the run was at when it was written
  };
  /// One that was not returned before, or has changed since. `step`: that the run is at.
  std::optional<Written> look(std::uint32_t step, SteadyTime now);
  /// The newest, of a program that is gone; also where it was returned before. `was_killed`: it may have been
  /// in the middle of one, so that an older one counts that was seen whole, where it is there still.
  std::optional<Written> last(std::uint32_t step, bool was_killed = false);

 private:
  struct State {
    std::filesystem::path file;
    std::uint64_t bytes = 0;
    timespec changed{};
    ino_t inode = 0;
    bool operator==(const State& other) const;
  };
  std::vector<State> all() const;
  std::optional<State> newest() const;

  const std::filesystem::path folder_;
  const std::string pattern_;
  std::optional<State> seen_;
  std::uint32_t seen_step_ = 0;
  SteadyTime seen_since_{}, next_{};
  bool said_ = false;
  std::optional<State> whole_;  ///< the newest that nothing had changed for a while
  std::uint32_t whole_step_ = 0;
};

}  // namespace abl::metrics
