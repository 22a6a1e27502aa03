// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "storage/table.h"

namespace abl::views {

/// What a reader of a table should know beside its numbers, a line each: rows whose curves are identical,
/// results made before a correction of the trainer, runs that said metrics which could not be read.
std::vector<std::string> table_notes(const storage::Table& table);

}  // namespace abl::views
