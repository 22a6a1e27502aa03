// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
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
  bool perhaps = false;         ///< nobody can say whether it has ended: it may be listed as running again
  std::chrono::seconds ran{0};  ///< so far
  std::string machine{};        ///< where it runs

  std::string worker() const { return queue + "-" + id; }  ///< the name of its worker
  bool operator==(const Pilot&) const = default;
};

/// With what the worker of one pilot gets in, where the scheduler has TLS.
struct Pass {
  std::string id;           ///< for lists and names of files
  std::string token;        ///< the secret: for a file that its owner alone reads, and nothing else
  std::string authorities;  ///< of the scheduler's certificate, in PEM; empty: those that the machine knows
};

/// What ended pilots of a queue have left where its workers live.
struct Leftovers {
  std::vector<std::string> passes;   ///< by their id: used, or of no use any more
  std::vector<std::string> workers;  ///< whose folders nobody will look at
  bool empty() const { return passes.empty() && workers.empty(); }
};

/// Places for more pilots of a queue, and what keeps it from more.
struct Room {
  int pilots = 0;
  std::string why{};
  bool operator==(const Room&) const = default;
};
/// Something that people want to hear of.
struct News {
  std::string queue, text;
};

/// So long before its time is over a worker asks its runs to stop, so that they write a checkpoint
/// (ablate-worker --time-limit).
constexpr std::chrono::seconds ends_early(std::chrono::seconds time_limit) {
  return std::clamp(time_limit / 10, std::chrono::seconds{10}, std::chrono::seconds{60});
}
/// What of a pilot's time is not a trial's: its worker starts and ends.
constexpr std::chrono::seconds start_and_end(std::chrono::seconds time_limit) {
  return 2 * ends_early(time_limit);
}
/// The least time for which a trial that can go on elsewhere, or of which nobody knows how long it takes, is
/// given to a worker whose time ends. `whole`: that it had at first.
template <class Duration>
constexpr Duration worthwhile(Duration whole) {
  return std::min<Duration>(std::chrono::minutes{2}, whole / 5);
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
  /// Whether the last `list` had all of a queue's pilots. Otherwise one that is not in it may be there.
  virtual bool knows_all(const QueueConfig& /*queue*/) { return true; }
  /// Asks for a pilot. Returns: its id.
  /// Throws: Error{kUnavailable} where nobody answers, another code where it is refused.
  virtual std::string submit(const QueueConfig& queue, const std::optional<Pass>& pass,
                             const std::stop_token& stop) = 0;
  /// Ends pilots: one that runs is asked first, so that its runs write a checkpoint. A pilot that has
  /// ended is no error. Throws: as `list`.
  virtual void cancel(const std::vector<Pilot>& pilots, const std::stop_token& stop) = 0;
  /// Removes it; what is not there is no error. Throws: Error where something stays.
  virtual void remove(const QueueConfig& queue, const Leftovers& leftovers, const std::stop_token& stop) = 0;
  /// As of the last `list`. Nothing where it takes any number.
  virtual std::optional<Room> room(const QueueConfig& /*queue*/) { return std::nullopt; }
  /// What has happened since this was asked last.
  virtual std::vector<News> news() { return {}; }
};

}  // namespace abl::launchers
