// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "storage/breaker_store.h"
#include "storage/types.h"

/// What follows from failures of many runs. Rules and what they remember: no clock, no store.
namespace abl::scheduler {

/// Of a level of which nothing has completed, while other levels have: so many failures, and what is queued
/// of it is held. Of a whole sweep of which nothing has completed; while it tries a few trials first. Where
/// all these share a level which others have not, only that level is held: the others may take longer.
inline constexpr std::uint32_t kLevelFailures = 3, kSweepFailures = 10, kCanaryFailures = 4;
/// So many of one worker alone are believed, though another might do better.
inline constexpr std::uint32_t kFailuresOfOneWorker = 10;
/// Trials of a sweep that run while none has got through: one for each worker, and no more.
inline constexpr std::uint32_t kCanaries = 4;
/// A trial that has gone on for so long has got through, though it says nothing.
inline constexpr std::chrono::minutes kCanaryTime{5};

/// Whether what is queued of a level, or of a sweep, is to be held. `elsewhere`: another worker could take
/// such trials, so that what one worker says alone may be the worker's own fault.
bool is_to_hold(const storage::FailureCounts& counts, bool elsewhere);
/// "all cells with groups=8": what a level is called.
std::string level_text(const storage::SweepLevel& level, const std::string& sweep);

struct QuarantinePolicy {
  int after = 5;  ///< failures in a row, of different trials; 0: never
  Milliseconds first{60'000}, longest{3'600'000};
};

/// Which workers trials fail on that would do well elsewhere. A worker is in quarantine after so many
/// failures of different trials in a row, with none that completed between them: it gets nothing but, after a
/// back-off, one trial. Where that fails as well the next back-off is twice as long; a trial that completes
/// ends it.
///
/// A failure is not the worker's where the same trial has failed on another too, or where of the other
/// workers that have run its sweep's trials as many see them fail as not. So a broken script puts nobody into
/// quarantine, and nor does a worker that is alone; and who is in quarantine comes out when it shows that
/// others fare no better.
/// Each call costs the logarithm of the workers, a failure as many as are in quarantine.
/// Thread: the coordinator's.
class Quarantine {
 public:
  explicit Quarantine(const QuarantinePolicy& policy) : policy_{policy} {}
  using Sweeps = std::vector<storage::SweepId>;

  /// A worker comes into quarantine, stays there for longer, or comes out of it.
  struct Change {
    std::string worker;
    std::optional<std::string> why;  ///< nothing: it is out
    Milliseconds back_off{};
  };

  void began(const std::string& worker, const Sweeps& sweeps);
  /// A run there has reported a number.
  void got_through(const std::string& worker, const Sweeps& sweeps);
  std::optional<Change> completed(const std::string& worker, const Sweeps& sweeps);
  /// `probe`: it was the one trial that a worker in quarantine gets.
  std::vector<Change> failed(const std::string& worker, storage::TrialId trial, const Sweeps& sweeps,
                             const std::string& reason, bool probe);
  /// Nothing runs there any more.
  void gone(const std::string& worker);

  /// As it is stored, and as somebody says.
  void set(const std::string& worker, const std::string& why, Milliseconds back_off);
  void forgive(const std::string& worker);
  bool contains(const std::string& worker) const;

 private:
  enum class News { kRuns, kThrough, kFails };
  struct Failure {
    storage::TrialId trial = 0;
    Sweeps sweeps;
  };
  struct Worker {
    std::vector<Failure> row;  // one after the other
    std::string last_reason;
    std::map<storage::SweepId, News> news;
    std::optional<std::string> why;  // it is in quarantine
    Milliseconds back_off{};
  };
  struct Workers {  // that have run a sweep's trials, by how these fare there
    int well = 0, failing = 0;
  };
  void hear(Worker& worker, const Sweeps& sweeps, News news);
  void count(storage::SweepId sweep, News news, int sign);
  void clear_row(const std::string& name, Worker& worker);
  int blamed(const std::string& name, const Worker& worker) const;

  QuarantinePolicy policy_;
  std::map<std::string, Worker> workers_;
  std::map<storage::SweepId, Workers> sweeps_;
  std::map<storage::TrialId, std::set<std::string>> failed_on_;  // trials of rows
  std::set<std::string> in_quarantine_;
};

}  // namespace abl::scheduler
