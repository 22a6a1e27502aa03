// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>

struct sqlite3;

namespace abl::storage {

/// One step of the schema: SQL that leads from version `to - 1` to version `to`.
struct Migration {
  int to;
  const char* sql;
};

/// Every step there is, in order, from 1 without gaps. A step that has been released is never changed. Of
/// each but the newest a file is kept, which is written when the next one begins:
/// tests/storage/frozen/make.py.
std::span<const Migration> migrations();

/// What marks an SQLite file as ours (PRAGMA application_id): "abl1".
inline constexpr int kApplicationId = 0x61626c31;

/// PRAGMA application_id and user_version, and whether the file holds nothing at all yet.
struct FileKind {
  int application_id = 0, version = 0;
  bool empty = false;
};
FileKind file_kind(sqlite3* db);

/// Brings an open file to the last of `steps`: all of them in one transaction under the write lock, so that a
/// failure leaves the file as it was. A file that holds something is copied first, as FILE.v<version>.bak.
/// Throws: Error naming the file and the step; kFailedPrecondition when the file is newer than `steps` or not
/// ours.
void migrate(sqlite3* db, const std::filesystem::path& file, std::span<const Migration> steps);

}  // namespace abl::storage
