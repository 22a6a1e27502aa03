// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ablate/v1/pages.pb.h"
#include "storage/database.h"
#include "storage/measured_store.h"

namespace abl::views {

/// How many trials of each of so many sweeps to look at: some thousand in total.
std::uint32_t trials_looked_at(std::size_t sweeps);

/// Why the queued trials of a sweep wait, the most common reason first. In a sweep with more than `most`
/// trials about that many places are looked at, evenly spread, and the numbers are marked as estimates.
std::vector<ablate::v1::WaitingReason> waiting_reasons(storage::Database& db,
                                                       const storage::OpenStanding& sweep,
                                                       std::uint32_t most);

}  // namespace abl::views
