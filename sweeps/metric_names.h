// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace abl::sweeps {

/// What is known of a number by its name, beside what is wanted of it (base/metric_name.h).
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

}  // namespace abl::sweeps
