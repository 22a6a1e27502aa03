// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ablate/v1/runs.pb.h"
#include "worker/agent/spool.h"

namespace abl::agent {

/// The last batch of a run that no program of this worker carries on.
ablate::v1::RunBatch last_batch(ablate::v1::RunEnded::Status status, const std::string& reason);

/// Keeps a run's last batch, in memory where the disk has no room.
void append_last(RunSpool& spool, ablate::v1::RunBatch last);

}  // namespace abl::agent
