// SPDX-License-Identifier: Apache-2.0
#include "storage/up_to_date.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <memory>

#include "storage/schema.h"
#include "storage/store_copy.h"

namespace abl::storage {
namespace fs = std::filesystem;

void remove_database(const fs::path& file) {
  std::error_code ignored;
  for (const char* part : {"", "-wal", "-shm", "-journal"}) fs::remove(file.string() + part, ignored);
}

UpToDate::UpToDate(const fs::path& file, const fs::path& near) : file_{file} {
  // what cannot be read, or is no results file, is for who opens it to say
  std::error_code unknown;
  if (!fs::is_regular_file(file_, unknown)) return;
  sqlite3* raw = nullptr;
  const int opened =
      sqlite3_open_v2(file_.c_str(), &raw, SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE, nullptr);
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> db{raw, &sqlite3_close_v2};
  if (opened != SQLITE_OK) return;
  constexpr int kPatienceMs = 10'000;
  sqlite3_busy_timeout(raw, kPatienceMs);
  FileKind kind;
  try {
    kind = file_kind(raw);
  } catch (const Error&) {
    return;
  }
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
