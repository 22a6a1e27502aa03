// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/trial_document.h"

namespace abl::config {

/// JSON Schema (2020-12) of a trial document: what `base` and the dotted keys of a sweep file may say.
/// Editors complete and check with it.
Json json_schema();

}  // namespace abl::config
