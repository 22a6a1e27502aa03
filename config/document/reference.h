// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "config/document/trial_document.h"

namespace abl::config {

/// JSON Schema (draft 7, which editors know) of a trial document: what `base` and the dotted keys of a sweep
/// file may say. What is of some families alone names them: x-families.
Json json_schema();

/// docs/config-reference.md: every key of a trial, the presets, the recipes and the data sets.
std::string reference_markdown();

}  // namespace abl::config
