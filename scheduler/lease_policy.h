// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "base/clock.h"
#include "scheduler/failure_policy.h"

namespace abl::scheduler {

/// How long a worker may be silent, and what follows from it. Pure rules, no state.
/// Workers are told the heartbeat interval and the ttl in `Welcome`; the interval is a fraction of the ttl,
/// so that one lost heartbeat loses no run.
struct LeasePolicy {
  Milliseconds heartbeat{2000};    ///< a worker renews its leases at least this often
  Milliseconds ttl{15000};         ///< a run that is not renewed for so long is lost
  Milliseconds stop_grace{10000};  ///< a trainer's time to checkpoint between SIGTERM and SIGKILL
  Milliseconds refusal{30000};     ///< a worker that refused a trial is not asked again for so long

  QuarantinePolicy quarantine;  ///< of workers on which trials fail that would do well elsewhere

  /// A sweep whose runs take no longer gets up to `depth` leases for a slot beyond the one that executes, so
  /// that its workers need not wait for the scheduler between them.
  Milliseconds quick{500};
  int ahead = 4, most_ahead = 16;
  /// So many, where runs take so long: work for a tenth of a second, and no less than `ahead`.
  int depth(Milliseconds typical) const;
  /// Runs that share a GPU, where their sweep packs; 1: none do.
  int pack_at_most = 4;

  /// Throws: Error{kInvalidArgument} when the heartbeat is not positive or more than half the ttl.
  void check() const;
  Time expires(Time now) const { return now + ttl; }
  /// After the scheduler's own absence every lease gets this long: workers need to notice and come back
  /// first.
  Time expires_after_restart(Time now) const { return now + 2 * ttl; }
  /// A session that said nothing for a whole ttl is dead, whatever the connection says.
  bool silent(Time last_heard, Time now) const { return now - last_heard >= ttl; }
  /// The scheduler itself did not look at its leases (the machine slept) for longer than a live worker leaves
  /// unused of one.
  bool was_away(Time last_look, Time now) const {
    return now - last_look >= std::max(ttl / 2, ttl - 2 * heartbeat);
  }
};

}  // namespace abl::scheduler
