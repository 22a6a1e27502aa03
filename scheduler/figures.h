// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/guarded.h"
#include "base/instruments.h"
#include "scheduler/work_queue.h"
#include "storage/types.h"

namespace abl::scheduler {

/// What the coordinator's work comes to, for those who watch over it. Counted by its thread where it happens.
/// Thread: any reads.
struct Figures {
  Tally leases, expired;       ///< granted; that ran out while their worker was silent
  std::array<Tally, 6> ended;  ///< runs, by storage::RunState
  std::array<Tally, 4>
      failed;  ///< of them those that failed, by protocol::FailureClass, as their workers say it
  Tally batches, points, batch_bytes;
  Histogram batch_seconds{kLatencyBounds};  ///< from the arrival of a batch to its acknowledgement

  /// How things stood at the last tick, half a second ago at most unless the store is stuck.
  struct Standing {
    std::chrono::steady_clock::time_point at{};
    WorkQueue::Load queue;
    std::size_t queued = 0;                    ///< trials that wait, those that back off among them
    std::optional<Milliseconds> longest_wait;  ///< as WorkQueue::Load::longest, from then to now
    std::size_t connected = 0, unhealthy = 0, drained = 0, stopping = 0, quarantined = 0;  ///< workers
    std::size_t busy = 0, free = 0, ahead = 0;  ///< slots; runs that wait at one
  };
  mutable Guarded<Standing> standing;

  /// What waits for workers, and which there are: for who gets more of them.
  struct Needs {
    struct Worker {
      std::string name;
      bool busy = false;  ///< some slot of it
    };
    Time at{};  ///< by the steady clock; 0: it was never noted
    std::vector<WorkQueue::Waiting> waiting;
    std::vector<Worker> workers;  ///< connected
  };
  mutable Guarded<Needs> needs;  ///< noted as `standing`, where somebody wants it (Coordinator::note_needs)
};

}  // namespace abl::scheduler
