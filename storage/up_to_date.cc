// SPDX-License-Identifier: Apache-2.0
#include "storage/up_to_date.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/sha256.h"
#include "storage/schema.h"
#include "storage/sqlite_error.h"
#include "storage/store_copy.h"

namespace abl::storage {
namespace fs = std::filesystem;

void remove_database(const fs::path& file) {
  std::error_code ignored;
  for (const char* part : {"", "-wal", "-shm", "-journal"}) fs::remove(file.string() + part, ignored);
}

namespace {

using Connection = std::unique_ptr<sqlite3, int (*)(sqlite3*)>;

Connection open_to_read(const fs::path& file, int& result) {
  sqlite3* raw = nullptr;
  result = sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE, nullptr);
  return {raw, &sqlite3_close_v2};
}

/// Each value with its kind and, of texts, its length: rows that differ give other bytes.
void digest_rows(sqlite3* db, const std::string& sql, Sha256& digest) {
  sqlite3_stmt* raw = nullptr;
  if (const int result = sqlite3_prepare_v2(db, sql.c_str(), -1, &raw, nullptr); result != SQLITE_OK)
    throw sqlite_error(db, result);
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement{raw, &sqlite3_finalize};
  std::string bytes;
  const auto add = [&](const auto& number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  int result = SQLITE_OK;
  while ((result = sqlite3_step(raw)) == SQLITE_ROW) {
    for (int i = 0; i < sqlite3_column_count(raw); ++i) {
      const int kind = sqlite3_column_type(raw, i);
      bytes += static_cast<char>(kind);
      if (kind == SQLITE_INTEGER) {
        add(static_cast<std::int64_t>(sqlite3_column_int64(raw, i)));
      } else if (kind == SQLITE_FLOAT) {
        add(sqlite3_column_double(raw, i));
      } else if (kind != SQLITE_NULL) {
        const void* value = sqlite3_column_blob(raw, i);
        const auto size = static_cast<std::size_t>(sqlite3_column_bytes(raw, i));
        add(static_cast<std::uint64_t>(size));
        if (size > 0) bytes.append(static_cast<const char*>(value), size);
      }
    }
    constexpr std::size_t kPiece = 64 << 10;  // a call for each row would cost more than the rows
    if (bytes.size() < kPiece) continue;
    digest.update(bytes);
    bytes.clear();
  }
  digest.update(bytes);
  if (result != SQLITE_DONE) throw sqlite_error(db, result);
}

std::string digest_of(sqlite3* db) {
  Sha256 digest;
  digest_rows(db, "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name", digest);
  std::vector<std::string> tables;
  Statement names{db, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"};
  while (names.step()) tables.push_back(names.text(0));
  for (const std::string& table : tables) {
    if (table == "checkpoint_piece" || table.starts_with("sqlite_")) continue;
    std::string quoted;
    for (const char c : table) quoted += c == '"' ? std::string{"\"\""} : std::string{c};
    digest.update(table + ";");
    digest_rows(db,
                table == "archive" ? "SELECT store_id, points, checkpoints FROM archive"
                                   : fmt::format("SELECT * FROM \"{}\"", quoted),
                digest);
  }
  return digest.hex();
}

/// Throws: Error{kDataLoss} for an archive that is not what was written.
void check_archive(sqlite3* db, const fs::path& file) {
  std::string wanted;
  try {
    Statement said{db, "SELECT digest FROM archive"};
    if (said.step()) wanted = said.text(0);
  } catch (const Error&) {  // no archive, or an older one
    return;
  }
  if (wanted.empty()) return;
  std::string why;
  try {
    if (digest_of(db) == wanted) return;
  } catch (const Error& error) {
    if (error.code() != Code::kDataLoss) throw;
    why = fmt::format(" ({})", error.what());
  }
  throw Error{Code::kDataLoss,
              fmt::format("{}: damaged: it does not hold what 'ablate archive' wrote{}; copy it "
                          "again from where it was made",
                          file.string(), why)};
}

}  // namespace

std::string content_digest(const fs::path& file) {
  int result = SQLITE_OK;
  const Connection db = open_to_read(file, result);
  if (result != SQLITE_OK) throw sqlite_error(db.get(), result, file.string());
  return digest_of(db.get());
}

UpToDate::UpToDate(const fs::path& file, const fs::path& near) : file_{file} {
  // what cannot be read, or is no results file, is for who opens it to say
  std::error_code unknown;
  if (!fs::is_regular_file(file_, unknown)) return;
  int opened = SQLITE_OK;
  const Connection db = open_to_read(file_, opened);
  sqlite3* const raw = db.get();
  if (opened != SQLITE_OK) return;
  constexpr int kPatienceMs = 10'000;
  sqlite3_busy_timeout(raw, kPatienceMs);
  FileKind kind;
  try {
    kind = file_kind(raw);
  } catch (const Error&) {
    return;
  }
  if (kind.application_id == kApplicationId) check_archive(raw, file_);
  const int newest = migrations().back().to;
  if (kind.application_id != kApplicationId || kind.version >= newest)
    return;  // who opens it says what is wrong
  copy_ = near.string() + ".current";
  remove_database(copy_);
  try {
    copy_store(raw, copy_);
    const Database brought_up{copy_, Database::Mode::kWrite};
  } catch (...) {
    remove();
    throw;
  }
  remove_database(fmt::format("{}.v{}.bak", copy_.string(), kind.version));
}

UpToDate::~UpToDate() { remove(); }

void UpToDate::remove() {
  if (copy_.empty()) return;
  remove_database(copy_);
  std::error_code ignored;
  for (int version = 1; version < migrations().back().to; ++version)
    fs::remove(fmt::format("{}.v{}.bak", copy_.string(), version), ignored);
}

}  // namespace abl::storage
