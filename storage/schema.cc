// SPDX-License-Identifier: Apache-2.0
#include "storage/schema.h"

#include <sqlite3.h>

#include <array>
#include <memory>
#include <string>

#include "base/fail_point.h"
#include "storage/curves.h"
#include "storage/database.h"
#include "storage/schema_versions.h"
#include "storage/sqlite_error.h"
#include "storage/store_copy.h"

namespace abl::storage {
namespace fs = std::filesystem;
namespace {

void execute(sqlite3* db, const std::string& sql) {
  if (const int result = sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr); result != SQLITE_OK)
    throw sqlite_error(db, result);
}

int integer(sqlite3* db, const char* sql) {
  return static_cast<int>(
      Statement{db, sql}.one([](const Statement& row) { return row.integer(0); }).value_or(0));
}

/// Copies the file through a connection of its own, which reads while the caller holds the write lock.
void back_up(const fs::path& file, const fs::path& to) {
  sqlite3* from = nullptr;
  const int opened = sqlite3_open_v2(file.c_str(), &from, SQLITE_OPEN_READONLY, nullptr);
  const std::unique_ptr<sqlite3, decltype(&sqlite3_close_v2)> close{from, &sqlite3_close_v2};
  try {
    if (opened != SQLITE_OK) throw sqlite_error(from, opened, file.string());
    copy_store(from, to);
  } catch (const Error& error) {
    throw Error{error.code(), "cannot copy " + file.string() + " before its schema changes: " + error.what()};
  }
}

void apply(sqlite3* db, const fs::path& file, std::span<const Migration> steps, int from) {
  for (const Migration& step : steps) {
    if (step.to <= from) continue;
    try {
      execute(db, step.sql);
    } catch (const Error& error) {
      throw Error{error.code(), file.string() + ": cannot be brought to schema " + std::to_string(step.to) +
                                    ", it stays as it was: " + error.what()};
    }
  }
  if (integer(db, "SELECT COUNT(*) FROM pragma_foreign_key_check") != 0)
    throw Error{Code::kDataLoss,
                file.string() + ": rows without the rows they refer to; the schema stays as it was"};
  execute(db, "PRAGMA application_id = " + std::to_string(kApplicationId));
  execute(db, "PRAGMA user_version = " + std::to_string(steps.back().to));
}

}  // namespace

std::span<const Migration> migrations() {
  static const std::array kMigrations{
      Migration{1, kSchemaV1},   Migration{2, kSchemaV2},   Migration{3, kSchemaV3},
      Migration{4, kSchemaV4},   Migration{5, kSchemaV5},   Migration{6, kSchemaV6},
      Migration{7, kSchemaV7},   Migration{8, kSchemaV8},   Migration{9, kSchemaV9},
      Migration{10, kSchemaV10}, Migration{11, kSchemaV11}, Migration{12, kSchemaV12},
      Migration{13, kSchemaV13}, Migration{14, kSchemaV14}, Migration{15, kSchemaV15},
      Migration{16, kSchemaV16}};
  return kMigrations;
}

FileKind file_kind(sqlite3* db) {
  return FileKind{.application_id = integer(db, "PRAGMA application_id"),
                  .version = integer(db, "PRAGMA user_version"),
                  .empty = integer(db, "SELECT COUNT(*) FROM sqlite_schema") == 0};
}

void migrate(sqlite3* db, const fs::path& file, std::span<const Migration> steps) {
  const int last = steps.back().to;
  if (const FileKind kind = file_kind(db); kind.application_id == kApplicationId && kind.version == last)
    return;
  execute(db, "BEGIN EXCLUSIVE");
  try {
    const FileKind kind = file_kind(db);  // again: another process may have been quicker
    if (!kind.empty && kind.application_id != kApplicationId)
      throw Error{Code::kInvalidArgument,
                  file.string() + ": an SQLite file of another program (application id " +
                      std::to_string(kind.application_id) + "), not a results file; give another path"};
    if (kind.version > last)
      throw Error{Code::kFailedPrecondition,
                  file.string() + ": written by a newer version of ablate (schema " +
                      std::to_string(kind.version) + ", this one knows up to " + std::to_string(last) +
                      "); use that version, or another file"};
    if (!kind.empty && kind.version < last)
      back_up(file, file.string() + ".v" + std::to_string(kind.version) + ".bak");
    add_curve_digest(db);
    if (kind.version < last) apply(db, file, steps, kind.version);
    fail_point(FailPoint::kMigration);
    execute(db, "COMMIT");
  } catch (...) {
    if (sqlite3_get_autocommit(db) == 0) sqlite3_exec(db, "ROLLBACK", nullptr, nullptr, nullptr);
    throw;
  }
}

}  // namespace abl::storage
