// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

/// Notes, for each claim on a trial that is completed, how many columns of its sweep take a metric that the
/// trial's run does not have: what is then missing in the table. What a probe finds is no such metric: it can
/// be looked for at any time. Nor is what no training of its kind of task reports. One trial may fill one
/// sweep and not another; a row of another sweep, which is in no table, lacks nothing.
void note_unfilled(Database& db, TrialId trial);

}  // namespace abl::storage
