// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/coordinator.h"
#include "storage/sweep_store.h"
#include "sweeps/sweep_spec.h"

/// What people do to sweeps. Each call is one change, made by the coordinator and answered after the commit;
/// of a sweep that is not there with Error{kNotFound}, of one in the wrong state with
/// Error{kFailedPrecondition}.
/// Thread: any.
namespace abl::scheduler {

/// What a submission did.
struct Submission {
  bool created = false;  ///< false: the sweep was there already, with the same content
  std::uint32_t new_trials = 0, shared_trials = 0;
};

/// How a sweep is to stand among the others.
struct Standing {
  std::optional<int> priority;
  std::string owner;                         ///< of a new one
  std::optional<double> weight;              ///< above 0
  std::optional<std::uint32_t> max_running;  ///< 0: as many as there is room for
  std::optional<bool> preempts;              ///< runs of lower priority give way
  std::optional<bool> breaker;               ///< trials are held that share what fails [true]
};

/// Stores a checked sweep with its trials. The same content under the same name changes nothing but how it
/// stands, where something of that is given; another content is Error{kAlreadyExists} with the difference, a
/// line each.
void submit_sweep(Coordinator& coordinator, sweeps::SweepSpec spec, Standing standing,
                  Coordinator::Answer<Submission> answer);

/// Withdraws the sweep's claims and stops the runs that nobody wants any more; a sweep with nothing left to
/// do stays as it is.
void cancel_sweep(Coordinator& coordinator, const std::string& sweep, Coordinator::Answer<> answer);

/// With `stop_running`, runs of the sweep that no other active sweep claims are stopped too.
void pause_sweep(Coordinator& coordinator, const std::string& sweep, bool stop_running,
                 Coordinator::Answer<> answer);

void resume_sweep(Coordinator& coordinator, const std::string& sweep, Coordinator::Answer<> answer);

/// Begins to take a sweep out of the store (storage::Removal); the Remover does the rest. Answers its number.
void remove_sweep(Coordinator& coordinator, const std::string& sweep,
                  Coordinator::Answer<storage::SweepId> answer);

/// Throws: Error{kInvalidArgument} for a name that no sweep file could have.
void rename_sweep(Coordinator& coordinator, const std::string& sweep, const std::string& name,
                  Coordinator::Answer<> answer);

/// New trials take the places of all completed ones of some rows; the old ones stay. Answers how many.
void rerun_rows(Coordinator& coordinator, const std::string& sweep, const std::vector<std::string>& rows,
                Coordinator::Answer<std::uint32_t> answer);

/// Runs trials again, of one row when `row` is given. Answers how many.
void retry_sweep(Coordinator& coordinator, const std::string& sweep, const std::string& row,
                 const storage::Retry& which, Coordinator::Answer<std::uint32_t> answer);

}  // namespace abl::scheduler
