// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

/// Takes sweeps out of a store: their claims, and the trials that no other sweep claims with all that their
/// runs have said. A sweep may have gigabytes, so it goes in steps of bounded cost, each a change of its own;
/// what is stored says how far it is, so that another start of the program goes on. The pages that become
/// free are used again by what is stored next; the file does not become shorter. Thread: the connection's.
class Removal {
 public:
  explicit Removal(Database& db) : db_{db} {}

  /// From now on the sweep's name is free, and nothing of it is run or changed any more.
  /// Throws: Error{kNotFound}; Error{kFailedPrecondition} where some of its trials are still wanted.
  SweepId begin(const std::string& sweep, Time now);

  /// A sweep on its way out.
  struct Left {
    std::uint32_t trials = 0;    ///< of its table, that are still there
    std::uint32_t stopping = 0;  ///< runs that have to end before it goes on
  };
  /// Nothing when it is gone, or was never being removed.
  std::optional<Left> left(SweepId sweep) const;
  /// Throws: Error{kFailedPrecondition} of one that is being removed.
  void refuse(SweepId sweep) const;

  enum class Step {
    kMore,   ///< there is more to do
    kWaits,  ///< until a run has ended
    kDone,   ///< nothing is being removed any more
  };
  /// One step of the oldest removal. What it costs: `rows` rows or so, whatever the sweep and the store have.
  Step step(Time now, int rows = 4000);

 private:
  bool remove_claim(SweepId sweep, Time now);
  bool remove_former(SweepId sweep);
  bool erase(TrialId trial);
  bool erase_heir(TrialId trial);
  bool erase_own(TrialId trial);
  bool erase_runs(TrialId trial);
  bool erase_run(RunId run);
  bool erase_lines(SweepId sweep);
  bool forget_transitions(SweepId sweep, std::int64_t from);
  bool let_go_of_pins();
  int take(const char* sql, std::int64_t of);
  bool has(const char* sql, std::int64_t of) const;

  Database& db_;
  int rows_ = 0;  // that this step may still take
  bool waits_ = false;
};

}  // namespace abl::storage
