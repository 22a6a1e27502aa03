// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "config/document/trial_document.h"

namespace abl::config {

/// JSON Schema (2020-12) of a trial document: what `base` and the dotted keys of a sweep file may say.
/// Editors complete and check with it. What is of some families alone names them: x-families.
Json json_schema();

/// docs/config-reference.md: every key of a trial, the presets, the recipes and the data sets.
std::string reference_markdown();

}  // namespace abl::config
