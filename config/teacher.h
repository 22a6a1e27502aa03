// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "config/trial_document.h"

namespace abl::config {

/// The model of a distilling recipe's teacher: its preset, on the trial's images and classes. All problems
/// are appended to `problems`, those of a preset that cannot take these images too; the result is usable only
/// when there are none.
TrialConfig read_teacher(const TrialConfig& trial, std::vector<Problem>& problems);

}  // namespace abl::config
