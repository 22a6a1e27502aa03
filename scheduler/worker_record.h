// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ablate/v1/workers.pb.h"
#include "storage/worker_store.h"

namespace abl::scheduler {

/// Throws: Error{kFailedPrecondition} naming both ranges when worker and scheduler speak no common protocol
/// version, Error{kInvalidArgument} when the name is empty or two slots have one index.
void check_hello(const ablate::v1::Hello& hello, std::uint32_t lowest_protocol,
                 std::uint32_t highest_protocol);

/// A connected worker as it is stored.
storage::WorkerRecord worker_record(const ablate::v1::Hello& hello, Time now);

}  // namespace abl::scheduler
