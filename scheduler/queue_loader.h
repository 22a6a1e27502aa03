// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scheduler/work_queue.h"
#include "storage/database.h"
#include "storage/touched.h"

/// How the queue in memory follows the store.
namespace abl::scheduler {

/// Reads the whole queue: every sweep, and every trial that waits or is under way. Once, at the start, or
/// after a read has failed.
void load(WorkQueue& queue, storage::Database& db, Time now);

/// Reads again what a commit has touched.
void follow(WorkQueue& queue, storage::Database& db, const storage::Touched& touched, Time now);

}  // namespace abl::scheduler
