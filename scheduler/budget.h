// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "storage/database.h"
#include "storage/types.h"

/// Budgets of sweeps: how much of GPUs their runs may take, and until when. Where one is spent, `sweep.spent`
/// says why, and nothing of the sweep is leased; what runs comes to its end, for a run that is stopped loses
/// what it did since its last checkpoint, and a command's all of it.
namespace abl::scheduler {

/// Why a budget is spent, in a line; empty: it is not. `used`: of ended runs and of those under way.
std::string why_spent(const storage::Budget& budget, Milliseconds used, Time now);

/// Stores whether a sweep's budget is spent. Returns: why, or empty.
std::string refresh_budget(storage::Database& db, storage::SweepId sweep, Time now);
/// The same of every sweep with a budget that wants a trial of which a run has ended.
void refresh_budgets_of(storage::Database& db, storage::TrialId trial, Time now);
/// The same of every sweep that has a budget and may lease: once a tick. Costs the number of these sweeps,
/// times that of runs under way. Returns: whether one has changed.
bool refresh_budgets(storage::Database& db, Time now);

}  // namespace abl::scheduler
