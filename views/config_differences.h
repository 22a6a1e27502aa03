// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::views {

/// Dotted key -> both values as JSON, of what two documents have that is not equal; empty: not there.
using Differences = std::map<std::string, std::pair<std::string, std::string>>;

/// Of two JSON objects.
Differences document_differences(const std::string& first, const std::string& second);

/// What two trials run differently, but for the seed. Weights of other trials are said in words: "the best
/// weights of msf/a". Throws: Error{kNotFound}.
Differences config_differences(storage::Database& db, storage::TrialId first, storage::TrialId second);

}  // namespace abl::views
