// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "storage/table.h"

namespace abl::views {

/// What a reader of a table should know beside its numbers, a line each: rows whose curves are identical,
/// results made before a correction of the trainer, runs that said metrics which could not be read.
std::vector<std::string> table_notes(const storage::Table& table);

/// What these are written from, and nothing else of the table: they come out the same.
storage::Table noted(const storage::Table& table);
/// Those that are of one row, and name no other, or of the whole table. `noted`: a table, or what is noted of
/// it.
std::vector<std::string> table_notes_of(const storage::Table& noted, const std::string& row);

}  // namespace abl::views
