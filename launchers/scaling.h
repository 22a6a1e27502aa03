// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "launchers/launcher.h"

/// How many workers a fleet should have: rules without a clock, a process or a store.
namespace abl::launchers {

/// Trials that wait for the same kind of worker.
struct WaitingTrials {
  std::size_t trials = 0;
  int gpus = 0;                   ///< of one worker; 0: any one slot
  std::chrono::seconds takes{0};  ///< what one needs at a stretch; 0: not known, or it can go on elsewhere,
                                  ///< so that it goes where some time is left
  std::set<std::size_t> queues;   ///< by their number, those whose workers could run them
};

/// A pilot and the worker that it is to be.
struct PilotStanding {
  Pilot pilot;
  bool connected = false;
  bool busy = false;              ///< some slot of it
  Time since{};                   ///< it has been in its state
  Time idle_since{};              ///< of one that is connected and not busy
  std::optional<Time> leaving{};  ///< when it was told to end
  /// For its machine. One whose worker is there does not, whatever its launcher said last.
  bool waits() const { return pilot.state == PilotState::kWaiting && !connected; }
};

struct QueueStanding {
  QueueConfig config;
  std::vector<PilotStanding> pilots;  ///< that wait or run
  std::string paused;                 ///< why; empty: it is not
  double gpu_hours = 0;               ///< that its pilots have had, ended ones too
  std::optional<Room> room{};         ///< nothing: its launcher takes any number
  std::optional<Time> last_submission;
};

struct Decision {
  enum class Kind { kSubmit, kCancel };
  Kind kind = Kind::kSubmit;
  std::size_t queue = 0;
  int pilots = 0;              ///< to submit
  std::vector<Pilot> which{};  ///< to cancel
  std::string reason;          ///< a sentence
  bool fruitless = false;      ///< to cancel: it did nothing though it should have
};

struct Decisions {
  std::vector<Decision> all;
  std::vector<std::string> why;  ///< of each queue: how many it wants, and what keeps it from more
};

/// A pilot runs so long without its worker being heard of, and is given up.
inline constexpr std::chrono::minutes kTimeToConnect{10};
/// One that was told to end may take so long to write checkpoints.
inline constexpr std::chrono::minutes kTimeToLeave{2};

/// What to do now. Queues are served in their order: what one takes up does not count for the next.
Decisions decide(const std::vector<QueueStanding>& queues, std::vector<WaitingTrials> waiting, Time now);

/// "4711, 4712 and 3 others"
std::string names_of(const std::vector<Pilot>& pilots);

/// Whether a queue goes on after submissions that failed, one after the other.
class SubmissionPolicy {
 public:
  static constexpr int kFailures = 3;  ///< in a row, and the queue pauses
  static constexpr Milliseconds kFirstPause{10'000}, kLongestPause{300'000};

  void succeeded() { failures_ = 0; }
  /// Returns: whether the queue is to pause, until a person looks.
  bool failed(Time now);
  /// Nobody could be asked: no failure of the queue's, and no reason to ask at each look.
  void unanswered(Time now);
  void answered() { unanswered_ = 0; }
  bool may_submit(Time now) const { return (failures_ == 0 && unanswered_ == 0) || now >= next_; }
  int failures() const { return failures_; }

 private:
  void wait(Time now, int times);

  int failures_ = 0, unanswered_ = 0;
  Time next_{};
};

/// "1 pilot", "2 pilots".
std::string counted(std::size_t count, const char* noun);

}  // namespace abl::launchers
