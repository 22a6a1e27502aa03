// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "config/trial_config.h"
#include "models/counting/network.h"
#include "worker/trainer/tasks/task.h"

namespace abl::tasks {

/// What a trial trains for, with its data opened. `trial` lives as long.
/// Throws: Error of data that cannot be used.
std::unique_ptr<Task> new_task(const config::TrialConfig& trial, TaskPlace place);

/// The network that a trial trains, for counting: no data are opened.
/// Throws: Error{kUnimplemented} for a family that is not built here.
models::Network network_of(const config::TrialConfig& trial);

}  // namespace abl::tasks
