// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "config/trial_document.h"

namespace abl::config {

/// The document in `file`. Throws: Error{kInvalidArgument} "FILE:line:column: …" where it is no JSON, and for
/// a key that an object holds twice and more than kDeepestJson levels; Error naming the file when it cannot
/// be read.
Json read_json(const std::filesystem::path& file);

}  // namespace abl::config
