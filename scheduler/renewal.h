// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "storage/types.h"

namespace abl::scheduler {

/// What a trial of the trainer that is of an older result version is today: its document as the file that it
/// came from gives it now, with the version that this has.
storage::RenewedTrial renewed(const storage::TrialRecord& trial);

}  // namespace abl::scheduler
