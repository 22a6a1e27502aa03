// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/coordinator.h"
#include "storage/provenance_store.h"
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
  std::string owner;                                      ///< of a new one
  std::optional<double> weight;                           ///< above 0
  std::optional<std::uint32_t> max_running;               ///< 0: as many as there is room for
  std::optional<bool> preempts;                           ///< runs of lower priority give way
  std::optional<bool> breaker;                            ///< trials are held that share what fails [true]
  storage::Budget budget{};                               ///< the parts that are given; 0: no limit
  std::optional<storage::ProvenanceRecord> provenance{};  ///< of a new one
  std::vector<std::string> tags{};                        ///< that it gets
};

/// Stores a checked sweep with its trials. The same content under the same name changes nothing but how it
/// stands, where something of that is given; another content is Error{kAlreadyExists} with the difference, a
/// line each.
void submit_sweep(Coordinator& coordinator, sweeps::SweepSpec spec, Standing standing,
                  Coordinator::Answer<Submission> answer);

/// Withdraws the sweep's claims and stops the runs that nobody wants any more; a sweep with nothing left to
/// do stays as it is.
void cancel_sweep(Coordinator& coordinator, const std::string& sweep, Coordinator::Answer<> answer);

/// Withdraws the sweep's claim on one trial. The sweep goes on. Error{kFailedPrecondition} where the trial
/// has ended.
void cancel_trial(Coordinator& coordinator, const std::string& sweep, const std::string& row,
                  std::int64_t seed, Coordinator::Answer<> answer);

/// Sets what `standing` gives for a stored sweep, except owner and provenance.
void adjust_sweep(Coordinator& coordinator, const std::string& sweep, Standing standing,
                  Coordinator::Answer<> answer);

/// With `stop_running`, runs of the sweep that no other active sweep claims are stopped too.
void pause_sweep(Coordinator& coordinator, const std::string& sweep, bool stop_running,
                 Coordinator::Answer<> answer);

/// `budget`: the parts that are given become the sweep's. One whose budget is spent, and that gets no more,
/// is Error{kFailedPrecondition}.
void resume_sweep(Coordinator& coordinator, const std::string& sweep, const storage::Budget& budget,
                  Coordinator::Answer<> answer);

/// How a sweep is to grow (sweeps/extension.h).
struct ExtensionWish {
  std::string author;
  bool dry_run = false;
  std::string expected;      ///< SHA-256 of the content that somebody has seen, or empty for any
  storage::Budget budget{};  ///< the parts that are given
  std::optional<storage::ProvenanceRecord> provenance{};
};
struct ExtensionDone {
  bool changed = false;
  std::vector<std::string> changes;
  storage::Extended trials;
  std::string stored;  ///< SHA-256 of the content that there was
};
/// Gives the stored sweep of the file's name its content, in one transaction; what nobody wants any more is
/// stopped. Answers Error{kNotFound} where there is none, Error{kFailedPrecondition} with a line for each
/// reason where the file takes something out, Error{kAborted} where the content is not the expected one.
void extend_sweep(Coordinator& coordinator, sweeps::SweepSpec spec, ExtensionWish wish,
                  Coordinator::Answer<ExtensionDone> answer);

// What a checked sweep is in the store.
storage::NewSweep sweep_record(const sweeps::SweepSpec& spec, const Standing& standing);
std::vector<storage::NewTrial> trial_records(const sweeps::SweepSpec& spec);

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
