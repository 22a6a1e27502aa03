// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/sweep_control.h"
#include "storage/database.h"
#include "storage/tuning_store.h"
#include "storage/types.h"
#include "sweeps/extension.h"
#include "sweeps/sweep_spec.h"

/// Rows whose values are looked for before their seeds are trained: `tune`. The tuning trials are those of a
/// sweep of their own, "NAME.tuning", which is submitted, paused, cancelled and removed with the sweep. When
/// the last one of a row has ended, in the transaction that stores its end, what is best is stored and the
/// row's trials are made.
namespace abl::scheduler {

/// What follows from what is known of a row's points.
struct TuningStep {
  bool waits = false;                           ///< trials of the newest rung have not ended
  int rung = 0;                                 ///< of `begin`
  std::vector<int> begin;                       ///< points that go on
  std::optional<storage::TuningChoice> choice;  ///< once nothing waits and no point goes on
};
/// `rungs`: how many points each one has; one for a design without rungs. A point without a value of each
/// seed (failed, cancelled, diverged) is never the best; of equal ones the first is. Held trials are waited
/// for: somebody has to look at them.
TuningStep next_step(const storage::RowTuning& row, const sweeps::Tune& tune,
                     const std::vector<std::size_t>& rungs);

/// Submits the tuning trials of a sweep that was just stored. Returns: how many, new ones and shared.
storage::Submitted begin_tuning(storage::Database& db, const sweeps::SweepSpec& spec, storage::SweepId sweep,
                                const Standing& standing, Time now);
/// The same of one that grows: rows that are other rows now are tuned anew, others keep what was chosen.
storage::Extended extend_tuning(storage::Database& db, const sweeps::SweepSpec& spec, storage::SweepId sweep,
                                const storage::Extension& extension, Time now);

/// Decides what can be decided of a sweep's rows by now. Nothing for one that is not tuned, or is cancelled.
void settle_tuning(storage::Database& db, storage::SweepId sweep, Time now);
/// The same of every row of which this is a tuning trial. Costs what these rows have where it is their last
/// one; otherwise little.
void tune_after(storage::Database& db, storage::TrialId trial, Time now);

/// The same of every sweep of which no tuning trial waits or runs, however they ended: an import, a sweep
/// that was cancelled. Costs the tuned sweeps that are open.
void settle_tunings(storage::Database& db, Time now);

/// A sweep, and that of its tuning trials where it has one.
std::vector<storage::SweepId> with_tuning(storage::Database& db, storage::SweepId sweep);
/// Queues the tuning trials again of rows of which nothing was chosen; what was chosen stays. `row`: of one
/// row; empty: of all.
std::uint32_t retry_tuning(storage::Database& db, storage::SweepId sweep, const std::string& row,
                           const storage::Retry& which, Time now);

}  // namespace abl::scheduler
