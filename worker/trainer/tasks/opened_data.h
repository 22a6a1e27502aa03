// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "data/image_source.h"
#include "worker/trainer/tasks/task.h"

namespace abl::tasks {

/// The images of a trial. Throws: Error, as a fault of this machine where it is the place in which they lie.
data::DataSet opened(const config::TrialConfig& trial, const TaskPlace& place);

/// What a task says of them.
TaskData task_data(const data::DataSet& set);

}  // namespace abl::tasks
