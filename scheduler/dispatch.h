// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/workers.pb.h"
#include "scheduler/fleet.h"
#include "scheduler/lease_policy.h"
#include "scheduler/placement.h"
#include "scheduler/work_queue.h"
#include "storage/database.h"
#include "storage/part_store.h"

/// One look at the queue: which trials go where, decided in memory, and their leases, stored as one change.
namespace abl::scheduler {

/// A trial that was placed and is to be leased.
struct Pick {
  Placement placement;
  Demand demand;
  std::string worker, host;
  std::vector<storage::RunPart> parts{};  ///< of the other workers, where several run it; without the run
  int priority = 0;
  bool quick = false;                    ///< runs of its sweep are known to be short
  std::vector<storage::RunId> beside{};  ///< the runs that it is put beside, but for those of the same look
};

/// What a look at the queue led to.
struct Picks {
  std::vector<Pick> picks;
  /// The first that found no place now, though some worker could take it.
  struct Waiting {
    Demand demand;
    int priority = 0;
    std::size_t preempting = 0;  ///< so many trials like it may take the places of runs of lower priority
  };
  std::optional<Waiting> waits;
};

/// Places trials in the queue's order as long as there is a place for any; behind others only those of quick
/// sweeps. They are taken out of the queue's sight, and their slots are marked.
Picks pick(WorkQueue& queue, Fleet& fleet, const LeasePolicy& policy, Time now);

/// An assignment that is in the store, to be sent once that is committed.
struct Dispatched {
  ablate::v1::Assign assign;
  std::vector<std::string> sweeps;  ///< that want the trial
};

/// Assignments of the other workers' parts of a run under way, by the workers' names. Empty where its ranks'
/// meeting place is not known yet, or one worker has it alone.
std::vector<std::pair<std::string, ablate::v1::Assign>> part_assignments(storage::Database& db,
                                                                         storage::RunId run,
                                                                         const LeasePolicy& policy);

/// What became of picks.
struct Leased {
  /// Of each pick; nothing for a trial that is not queued any more, or not as it was.
  std::vector<std::optional<Dispatched>> assignments;
  bool renewed = false;  ///< some trials are others now, of today's result version
};

/// Leases what was picked. One change, to be made in one job of the writer.
Leased lease(storage::Database& db, const std::vector<Pick>& picks, const LeasePolicy& policy, Moment now);

}  // namespace abl::scheduler
