// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "config/data/data_sets.h"
#include "config/field_table.h"
#include "config/json.h"
#include "config/trial_config.h"

namespace abl::config {

/// The one table of the section `task`.
const std::vector<Field<TaskConfig>>& task_fields();

/// A missing section is classification.
TaskConfig read_task(const Json& section, std::vector<Problem>& problems);

/// Whether there is anything to say: of classification there is not, and its documents have no section.
inline bool is_said(const TaskConfig& task) { return task.kind != TaskKind::kClassify; }

/// Whether it is about the features that a backbone has for images.
bool describes_images(const TaskConfig& task);

/// Whether what stands on the backbone has batch normalisation; of a detector what refines its maps.
bool has_batch_norm(const TaskConfig& task);

/// Why a data set has nothing to learn for a task of that kind, or empty.
std::string unfit(const DataSet& set, TaskKind kind);

/// What of the task counts depend on: that of its keys which shape the network.
Json counted_task(const TaskConfig& task);

/// Whether a completed training is, to the bit, the beginning of one that differs in its epochs alone: what a
/// step does depends on nothing that comes after it.
bool begins_longer_ones(const TrialConfig& trial);

/// What does not fit together in a task and the model, data and recipe around it.
void check_task(const TrialConfig& trial, std::vector<Problem>& problems);

}  // namespace abl::config
