// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What the name of a metric tells, where nobody says more. The one place that knows: sweeps take their
/// columns' defaults from here, the store the best of a run that no column judges, the trainer which
/// checkpoint to keep.
namespace abl::protocol {

enum class Better { kNone, kHigher, kLower };

/// What is wanted of a metric or count. Losses, errors, times and sizes are wanted low, learning rates
/// neither; accuracies, rates ("images_per_s") and what is not known, high.
Better better_by_name(std::string_view metric);
/// As sweeps and columns say it: "higher", "lower" or "none".
std::string_view to_text(Better better);

/// True for what tells of the machine and the hour, not of the model: times, rates, memory and how busy it
/// is. Two trainings that are equal differ in these.
bool tells_of_the_machine(std::string_view metric);

/// What is known of a number by its name, beside what is wanted of it.
struct Quantity {
  std::string_view name;
  std::string_view unit;  ///< "%", "M", "G" or empty
};

/// The metrics that the trainer emits (docs/trainer-protocol.md).
std::span<const Quantity> trainer_metrics();
/// What can be counted without training.
std::span<const Quantity> count_modes();

std::vector<std::string> names(std::span<const Quantity> quantities);
/// Null when there is none of that name.
const Quantity* find(std::span<const Quantity> quantities, std::string_view name);

}  // namespace abl::protocol
