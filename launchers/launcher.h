// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "launchers/fleet_file.h"

namespace abl::launchers {

enum class PilotState { kWaiting, kRunning, kEnded };
constexpr std::string_view name_of(PilotState state) {
  switch (state) {
    case PilotState::kWaiting:
      return "waiting";
    case PilotState::kRunning:
      return "running";
    case PilotState::kEnded:
      return "ended";
  }
  return {};
}

/// A worker that was asked of a launcher, from its submission to its end.
struct Pilot {
  std::string id;  ///< the launcher's: "4711"
  std::string queue;
  PilotState state = PilotState::kWaiting;
  std::string said{};           ///< in the launcher's words: why it waits, or how it ended
  bool failed = false;          ///< it ended otherwise than by its own will or an order to
  std::chrono::seconds ran{0};  ///< so far
  std::string machine{};        ///< where it runs

  std::string worker() const { return queue + "-" + id; }  ///< the name of its worker
  bool operator==(const Pilot&) const = default;
};

/// Before its time is over a pilot is asked to end, so that its runs write a checkpoint; where that is so
/// long that it counts.
inline constexpr std::chrono::seconds kEndsEarly{60};
constexpr bool ends_early(std::chrono::seconds time_limit) { return time_limit >= std::chrono::minutes{10}; }
/// What of a pilot's time is not a trial's: its worker starts and ends.
constexpr std::chrono::seconds start_and_end(std::chrono::seconds time_limit) {
  return ends_early(time_limit) ? 2 * kEndsEarly : std::chrono::seconds{30};
}

/// Starts and ends pilots by somebody else's hand. It knows no more than that one says: whatever is asked is
/// asked anew, so that neither side's restart loses a pilot. Only pilots of its own store are listed or
/// cancelled.
/// Every call may block for as long as the other side takes, up to a limit, and ends early when `stop` is
/// requested. Thread: one at a time.
class Launcher {
 public:
  virtual ~Launcher() = default;

  /// All pilots of its queues that are there, and those that ended a little while ago.
  /// Throws: Error{kUnavailable} where that cannot be known now, which says nothing of the pilots.
  virtual std::vector<Pilot> list(const std::stop_token& stop) = 0;
  /// Asks for a pilot. Returns: its id.
  /// Throws: Error{kUnavailable} where nobody answers, another code where it is refused.
  virtual std::string submit(const QueueConfig& queue, const std::stop_token& stop) = 0;
  /// Ends pilots: one that runs is asked first, so that its runs write a checkpoint. A pilot that has
  /// ended is no error. Throws: as `list`.
  virtual void cancel(const std::vector<Pilot>& pilots, const std::stop_token& stop) = 0;
};

}  // namespace abl::launchers
