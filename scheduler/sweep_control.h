// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/database.h"
#include "storage/sweep_store.h"
#include "storage/types.h"
#include "sweeps/sweep_spec.h"

namespace abl::scheduler {

/// What a submission did.
struct Submission {
  bool created = false;  ///< false: the sweep was there already, with the same content
  std::uint32_t new_trials = 0, shared_trials = 0;
};

/// Stores a checked sweep with its trials. The same content under the same name changes nothing but the
/// priority, where one is given.
/// Throws: Error{kAlreadyExists} with the difference, a line each, when the name has another content.
Submission store_sweep(storage::Database& db, const sweeps::SweepSpec& spec, std::optional<int> priority,
                       Time now);

}  // namespace abl::scheduler

/// What people do to a stored sweep. Each call is one change, to be made in one job of the writer.
/// Throws (all): Error{kNotFound} for a sweep that is not there, Error{kFailedPrecondition} for one in the
/// wrong state.
namespace abl::scheduler {

/// Why runs are stopped, as workers and stored runs say it.
inline constexpr const char *kCancelled = "cancelled", *kPaused = "paused";

/// Withdraws the sweep's claims; a sweep with nothing left to do stays as it is.
/// Returns: the runs that nobody wants any more; they are to be stopped.
std::vector<storage::RunId> cancel_sweep(storage::Database& db, const std::string& name, Time now);
/// Returns: with `stop_running`, the runs of the sweep that no other active sweep claims; they are to be
/// stopped.
std::vector<storage::RunId> pause_sweep(storage::Database& db, const std::string& name, bool stop_running,
                                        Time now);
void resume_sweep(storage::Database& db, const std::string& name, Time now);
/// Runs trials again, of one row when `row` is given. Returns: how many.
std::uint32_t retry_sweep(storage::Database& db, const std::string& name, const std::string& row,
                          const storage::Retry& which, Time now);

/// Names of the sweeps that claim a trial, each once.
std::vector<std::string> sweeps_of(storage::Database& db, storage::TrialId trial);

}  // namespace abl::scheduler
