// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace abl::config {

/// docs/config-reference.md: every key of a trial, the presets, the recipes and the data sets.
std::string reference_markdown();

}  // namespace abl::config
