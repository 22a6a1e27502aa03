// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

/// What the name of a metric tells, where nobody says more. The one place that knows: sweeps take their
/// columns' defaults from here, the store the best of a run that no column judges, the trainer which
/// checkpoint to keep.
namespace abl {

enum class Better { kNone, kHigher, kLower };

/// What is wanted of a metric or count. Losses, errors, times and sizes are wanted low, learning rates
/// neither; accuracies, rates ("images_per_s") and what is not known, high.
Better better_by_name(std::string_view metric);
/// As sweeps and columns say it: "higher", "lower" or "none".
std::string_view to_text(Better better);

/// True for what tells of the machine and the hour, not of the model: times, rates, memory and how busy it
/// is. Two trainings that are equal differ in these.
bool tells_of_the_machine(std::string_view metric);

}  // namespace abl
