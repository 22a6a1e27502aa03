// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ablate/v1/workers.pb.h"
#include "scheduler/lease_policy.h"
#include "scheduler/placement.h"
#include "storage/database.h"

namespace abl::scheduler {

/// An assignment that is in the store, to be sent once that is committed.
struct Dispatched {
  std::uint64_t session = 0;
  ablate::v1::Assign assign;
};

/// What one look at the queue led to.
struct Dispatch {
  std::vector<Dispatched> assignments;
  std::map<storage::TrialId, std::string> reasons;  ///< of every trial that still waits
  std::vector<std::string> sweeps;                  ///< that see a change
};

/// Leases queued trials to free slots, in the queue's order, and writes down why each of the others waits,
/// where that is not what `known` says already. One change, to be made in one job of the writer.
Dispatch dispatch(storage::Database& db, std::vector<WorkerState> workers,
                  const std::map<storage::TrialId, std::string>& known, const LeasePolicy& policy,
                  Moment now);

}  // namespace abl::scheduler
