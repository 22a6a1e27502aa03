// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite_error.h"

#include <sqlite3.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

namespace abl::storage {
namespace {

std::string system_text(int error_number) {
  return error_number == 0 ? "" : " (" + std::generic_category().message(error_number) + ")";
}

}  // namespace

Error sqlite_error(sqlite3* db, int result, const std::string& given) {
  const char* name = sqlite3_db_filename(db, "main");
  const std::string file = !given.empty() ? given : name && *name ? name : "results file";
  const int why = sqlite3_system_errno(db);
  std::string detail = sqlite3_errmsg(db);  // of a damaged schema with its lines
  std::ranges::replace_if(
      detail, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  switch (result & 0xff) {  // the extended codes carry the primary one in the low byte
    case SQLITE_FULL:
      return Error{Code::kResourceExhausted,
                   file + ": the disk is full; free some space: what was acknowledged is stored"};
    case SQLITE_IOERR:
      return Error{Code::kResourceExhausted,
                   file + ": " + detail + system_text(why) +
                       "; check the disk and its free space: what was acknowledged is stored"};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Error{Code::kUnavailable, file + ": in use by another program; end it, or try again later"};
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return Error{
          why == ENOSPC ? Code::kResourceExhausted : Code::kPermissionDenied,
          file + ": cannot be opened or written" + system_text(why) + "; check the path and its permissions"};
    case SQLITE_NOTADB:
      return Error{Code::kDataLoss, file + ": not a results file (no SQLite database); give another path"};
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
      return Error{Code::kInvalidArgument, file + ": " + detail};
    case SQLITE_CORRUPT:
      return Error{Code::kDataLoss, file + ": damaged (" + detail +
                                        "); restore a copy, or salvage it with `sqlite3 FILE .recover`"};
    case SQLITE_INTERRUPT:
      return Error{Code::kCancelled, file + ": request cancelled"};
    case SQLITE_NOMEM:
      return Error{Code::kResourceExhausted, file + ": out of memory"};
    default:
      return Error{Code::kInternal, file + ": " + detail};
  }
}

bool is_of_what_is_stored(Code code) {
  return code == Code::kInvalidArgument || code == Code::kFailedPrecondition || code == Code::kNotFound ||
         code == Code::kAlreadyExists || code == Code::kAborted;
}

}  // namespace abl::storage
