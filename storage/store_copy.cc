// SPDX-License-Identifier: Apache-2.0
#include "storage/store_copy.h"

#include <sqlite3.h>

#include "base/new_file.h"
#include "storage/sqlite_error.h"

namespace abl::storage {

void copy_store(sqlite3* from, const std::filesystem::path& to) {
  NewFile copy{to, {.ending = ".partial", .mode = 0600}};
  sqlite3* into = nullptr;
  int result =
      sqlite3_open_v2(copy.part().c_str(), &into, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  if (result == SQLITE_OK) {
    sqlite3_backup* backup = sqlite3_backup_init(into, "main", from, "main");
    result = backup ? sqlite3_backup_step(backup, -1) : sqlite3_errcode(into);
    if (const int finished = sqlite3_backup_finish(backup); finished != SQLITE_OK) result = finished;
    if (result == SQLITE_DONE) result = SQLITE_OK;
  }
  const Error error = sqlite_error(into, result, copy.part().string());
  sqlite3_close_v2(into);
  if (result != SQLITE_OK) throw error;
  copy.publish();
}

}  // namespace abl::storage
