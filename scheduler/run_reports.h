// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/workers.pb.h"
#include "protocol/failure.h"
#include "scheduler/placement.h"
#include "storage/breaker_store.h"
#include "storage/change.h"
#include "storage/database.h"
#include "storage/types.h"

/// What workers say of their runs, brought into the store. Each call is one change, to be made in one job of
/// the writer; what it returns may be told to the worker once that job is committed.
namespace abl::scheduler {

/// Why runs are stopped, as workers and stored runs say it.
inline constexpr const char *kCancelled = "cancelled", *kExtended = "its sweep was extended without it",
                            *kPaused = "paused", *kRecalled = "recalled", *kDrained = "its worker is drained";

/// What a report did to a run.
struct Reported {
  storage::RunId run = 0;
  std::uint64_t stored = 0;  ///< every batch up to this one is stored; 0: acknowledge nothing
  std::string fenced;        ///< why the worker must drop the run, or empty
  bool ended = false;        ///< its slots are free now
  /// How long its program ran, of a completed run, or of one that its worker stopped as it ended.
  std::optional<Milliseconds> took;
  bool outlived = false;                      ///< the latter: another one takes longer
  std::vector<storage::SweepId> claimants{};  ///< of such a run's trial
  bool silent = false;                        ///< it ended because its worker said nothing for too long
  std::string stop;                           ///< why it is to be stopped, or empty
  std::string note;                           ///< for the log, or empty
  storage::TrialId trial = 0;
  int attempt = 0;
  std::optional<storage::RunState> state{};                         ///< in which it ended
  std::optional<storage::TrialState> trial_state{};                 ///< in which that left its trial
  std::string reason{};                                             ///< of that end
  protocol::FailureClass failure = protocol::FailureClass::kTrial;  ///< of a failed one
  std::string wrong_data;               ///< a data set that this worker has another version of, or empty
  std::optional<Wanted> wrong_weights;  ///< of which this worker has another version
  std::vector<std::string> sweeps;      ///< that see a change
  /// What is held from now on because its trials fail, and the row from which on that is still to be done.
  std::vector<std::pair<storage::SweepLevel, storage::HoldFrom>> holds{};
  std::vector<storage::RunId> unwanted{};  ///< runs of that which were leased ahead
  /// Of a run whose ranks' meeting place is known now: what the other workers are told.
  std::vector<std::pair<std::string, ablate::v1::Assign>> parts{};
  bool through = false;     ///< it is the first of its sweep that got through: others may run now
  std::string pack{};       ///< of a run that ended and may share its GPU: TrialRecord::pack, and
  double memory_bytes = 0;  ///< what such a run is known to take; 0: it is not, or none is put beside others
};

/// Stores a batch in the order started, series, log, checkpoints, ended; one that is stored already is
/// acknowledged again. A run that is not under way on this worker is fenced. A run whose data or weights are
/// not the pinned ones ends, and its trial goes to another worker. What cannot be stored, and could not be
/// however often it came, ends its run and that alone: as lost where this results file is at fault (it is
/// older than the run and lacks what it refers to), as failed where the run is. `first`: of this run in its
/// session, so what is missing before it will not come. `beside`: other runs on its GPU, on the average.
/// Throws: Error for trouble that passes, as a full disk; the worker is to come again.
Reported store_batch(storage::Database& db, const std::string& worker, const ablate::v1::RunBatch& batch,
                     bool first, Moment now, double beside = 0);

/// An assignment that the worker cannot carry out: the trial fails when `permanent`, otherwise it goes back
/// to the queue.
Reported store_refusal(storage::Database& db, const std::string& worker, const ablate::v1::Refused& refused,
                       Moment now);

/// A run whose worker left before it could be told of it: nobody executes it, its trial goes back to the
/// queue.
Reported return_unassigned(storage::Database& db, storage::RunId run, Moment now);

/// Renews the leases of a worker's runs; one that is not under way there any more is acknowledged or fenced,
/// as by `settle`.
std::vector<Reported> renew(storage::Database& db, const std::string& worker,
                            const std::vector<storage::RunId>& runs, Time expires);

/// Settles what a worker that comes back has with what the store says: runs under way there are adopted
/// (renewed), those it lost go back to the queue at once, the others are acknowledged when they ended by its
/// own word and fenced when not. A run whose lease ran out, but whose trial nobody has taken since, goes on.
/// A run of the same number from another results file, or from a copy of this one, is told apart by its token
/// and fenced. To be called before the store learns of the worker's new program.
std::vector<Reported> settle(storage::Database& db, const ablate::v1::Hello& hello, Moment now, Time expires);

/// Ends the runs whose leases ran out: their trials go back to the queue. Their workers are told nothing: one
/// that comes back while nobody has the trial goes on with it.
std::vector<Reported> expire(storage::Database& db, Moment now);

/// Stores what a worker's heartbeat says of what its runs take of their machine, also of those that have
/// ended. What is of no run of this worker, or of another results file, is left out, and so is a sample with
/// a number that no machine has: samples are no part of a result, and none is worth a heartbeat. To be called
/// in one job of the writer. Returns: what changed, for those who watch it.
std::vector<storage::Change> store_resources(
    storage::Database& db, const std::string& worker,
    const google::protobuf::RepeatedPtrField<ablate::v1::RunResources>& resources);

}  // namespace abl::scheduler
