// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/trial_config.h"
#include "data/annotated/annotated_source.h"
#include "images/annotated.h"
#include "worker/trainer/tasks/making.h"
#include "worker/trainer/tasks/task.h"

namespace abl::tasks {

/// The annotated pictures of a trial: drawn, or of the folder or file at the place. Where they are only to be
/// timed and are not there, drawn ones stand in.
/// Throws: Error, as a fault of this machine's data: none there, without what the task learns, or of other
/// classes than the trial's.
data::AnnotatedSet annotated_data(const config::TrialConfig& trial, const TaskPlace& place);

using PicturePlan = MakingPlan<images::Annotated>;
using PicturesInMaking = ItemsInMaking<images::Annotated>;

}  // namespace abl::tasks
