// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

struct sqlite3;

namespace abl::storage {

/// Writes what a connection reads, its log included, into one file for its owner alone, whose name appears
/// when it is whole.
/// Throws: Error naming what cannot be read or written; nothing is left then.
void copy_store(sqlite3* from, const std::filesystem::path& to);

}  // namespace abl::storage
