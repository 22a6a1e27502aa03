// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

/// What a submission did.
struct Submitted {
  SweepId sweep = 0;
  std::uint32_t new_trials = 0, shared_trials = 0;
};

/// Which trials go back to the queue.
struct Retry {
  bool ended = true;  ///< failed and cancelled ones
  bool held = true;
};

/// Sweeps, their rows and columns, and their claims on trials. Thread: the connection's.
class SweepStore {
 public:
  explicit SweepStore(Database& db) : db_{db} {}

  /// Stores a sweep with its rows, columns and claims. A trial that is there already (same identity, with the
  /// pinned fingerprint of its data or none yet) is claimed, not queued again; a cancelled or failed one goes
  /// back to the queue. Throws: Error{kAlreadyExists} when the name is taken.
  Submitted insert(const NewSweep& sweep, const std::vector<NewTrial>& trials, Time now);

  std::optional<SweepRecord> find(const std::string& name) const;
  /// Throws: Error{kNotFound} naming the nearest sweep there is.
  SweepRecord get(const std::string& name) const;
  std::vector<SweepRecord> list() const;  ///< newest first
  void set_state(SweepId sweep, SweepState state, Time now);
  void set_priority(SweepId sweep, int priority);

  /// Its trials by row, then seed; cancelled where the claim was withdrawn before the trial ended.
  std::vector<ClaimRecord> claims(SweepId sweep) const;
  /// The sweeps that claim a trial.
  std::vector<SweepId> claimants(TrialId trial) const;
  /// Where a trial stands in the sweeps that claim it: (sweep name, row id, label, seed).
  struct Position {
    std::string sweep, row, label;
    std::int64_t seed = 0;
  };
  std::vector<Position> positions(TrialId trial) const;

  /// Cancels a sweep: withdraws all its claims; queued trials without a claim are cancelled at once.
  /// Returns: the runs of leased and running trials that nobody claims any more: the caller stops them.
  std::vector<RunId> withdraw(SweepId sweep, Time now);
  /// Failed, cancelled and held trials of a sweep (of one row when given) go back to the queue, with all
  /// their retries; a cancelled sweep claims its trials again and is active, unless held ones alone are
  /// wanted. Returns how many were queued. Throws: Error{kNotFound} for a row that is not there.
  std::uint32_t retry(SweepId sweep, const std::string& row_id, Time now, Retry which = {});

 private:
  Database& db_;
};

}  // namespace abl::storage
