// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

/// Trials of a sweep that share a level of a factor: what a row sets, or, where rows set nothing in common,
/// the row itself (its factor is empty then, its level the row's id). Both empty: all trials of the sweep.
struct SweepLevel {
  SweepId sweep = 0;
  std::string factor{}, level{};
  bool operator==(const SweepLevel&) const = default;
};

/// What trials with something in common came to, since their sweep was submitted or retried.
struct FailureCounts {
  SweepLevel of;
  std::string sweep;                 ///< its name
  std::uint32_t failures = 0;        ///< trials that failed for good by themselves
  std::uint32_t sweep_failures = 0;  ///< of the whole sweep, but for levels that are held
  bool several_workers = false;      ///< not all on one
  bool completed = false;            ///< one has
  bool sweep_completed = false;      ///< one of the sweep has
  bool canary = false;               ///< its sweep waits for a first trial that gets through
  bool held = false;                 ///< what is left of them is held already
};

/// A place in the order of a sweep's trials.
struct HoldFrom {
  std::uint32_t row = 0, seed_index = 0;
  bool operator==(const HoldFrom&) const = default;
};

/// What of a sweep fails, counted by levels as trials end, and what is held for that: whoever decides that
/// something is held looks at the counts (scheduler/failure_policy.h).
/// Each call costs the few sweeps and levels of one trial, but for `hold` and what lets go.
/// Thread: the connection's.
class BreakerStore {
 public:
  explicit BreakerStore(Database& db) : db_{db} {}

  static constexpr std::uint32_t kLeastTrials = 3;  ///< of a level that is counted

  /// A trial has completed: its levels are not held (any more).
  void completed(TrialId trial, Time now);
  /// A trial of a sweep that tries a few first has got through.
  void got_through(TrialId trial);
  /// Likewise of all that have a run which has gone on since before `since` (wall clock).
  void got_through_before(Time since);
  /// A trial has failed for good on this worker, by itself. Returns: its levels and its sweeps as they are
  /// now.
  std::vector<FailureCounts> failed(TrialId trial, const std::string& worker);

  /// From now on these are held, for the reason that most of them failed for. `what`: "all cells with
  /// groups=8". Returns: that reason in a sentence; empty: nothing of them is queued or leased, so nothing is
  /// held, and they say nothing more of the others all the same.
  std::string begin_hold(const SweepLevel& level, const std::string& what, std::uint32_t failures);
  /// Holds the queued ones from `from` on, as many as one transaction may; those that another sweep wants
  /// too, and does not hold, stay in the queue, and so do rows that were retried since. Returns: where to go
  /// on; nothing: there are no more.
  std::optional<HoldFrom> hold(const SweepLevel& level, HoldFrom from, Time now);
  /// Runs of them that are leased and have not begun, as far as their workers have said.
  std::vector<RunId> leased(const SweepLevel& level) const;
  /// A trial that went back to the queue is held where what it shares with others is, and no other sweep
  /// wants it still. Returns: whether it is held now.
  bool hold_again(TrialId trial, Time now);
  /// A sweep that is not active any more wants none of its trials: those that all others hold are held.
  void give_up(SweepId sweep, Time now);
  /// A sweep that has become active wants its trials: those that others hold go back to the queue.
  void want(SweepId sweep, Time now);
  std::vector<SweepLevel> held() const;  ///< all that are

  /// A level of a new sweep: how many trials have it, and whether one of them has completed, for another.
  struct NewLevel {
    std::string factor, level;
    std::uint32_t trials = 0;
    bool completed = false;
  };
  /// Those of a new sweep with a breaker, each once.
  void add_levels(SweepId sweep, const std::vector<NewLevel>& levels);
  /// Whoever retries a sweep's trials starts anew.
  void reset(SweepId sweep);
  /// Likewise of a row: what it shares with others begins to count again, and what is left of those stays
  /// held until one of them completes.
  void reset(SweepId sweep, const std::string& row);

 private:
  bool is_left(const SweepLevel& level) const;
  void let_go(SweepId sweep, const std::string& reason, Time now);
  Database& db_;
};

}  // namespace abl::storage
