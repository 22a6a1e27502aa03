// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ablate/v1/workers.pb.h"
#include "storage/change.h"
#include "storage/database.h"

namespace abl::scheduler {

/// Stores what a worker's heartbeat says of what its runs take of their machine, also of those that have
/// ended. What is of no run of this worker, or of another results file, is left out, and so is a sample with
/// a number that no machine has: samples are no part of a result, and none is worth a heartbeat. To be called
/// in one job of the writer. Returns: what changed, for those who watch it.
std::vector<storage::Change> store_resources(
    storage::Database& db, const std::string& worker,
    const google::protobuf::RepeatedPtrField<ablate::v1::RunResources>& resources);

}  // namespace abl::scheduler
