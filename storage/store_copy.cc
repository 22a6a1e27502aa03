// SPDX-License-Identifier: Apache-2.0
#include "storage/store_copy.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include "storage/sqlite_error.h"

namespace abl::storage {

namespace fs = std::filesystem;

void copy_store(sqlite3* from, const fs::path& to) {
  const fs::path partial = to.string() + ".partial";
  fs::remove(partial);
  if (const int fd = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); fd >= 0)
    ::close(fd);
  sqlite3* into = nullptr;
  int result = sqlite3_open_v2(partial.c_str(), &into, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  if (result == SQLITE_OK) {
    sqlite3_backup* backup = sqlite3_backup_init(into, "main", from, "main");
    result = backup ? sqlite3_backup_step(backup, -1) : sqlite3_errcode(into);
    if (const int finished = sqlite3_backup_finish(backup); finished != SQLITE_OK) result = finished;
    if (result == SQLITE_DONE) result = SQLITE_OK;
  }
  const Error error = sqlite_error(into, result, partial.string());
  sqlite3_close_v2(into);
  if (result == SQLITE_OK) return fs::rename(partial, to);
  std::error_code ignored;
  fs::remove(partial, ignored);
  throw error;
}

}  // namespace abl::storage
