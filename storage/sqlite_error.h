// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/error.h"

struct sqlite3;

namespace abl::storage {

/// The failure `result` of a call on `db` as an Error: one line that names the file, the reason and what to
/// do. A full disk is kResourceExhausted, a lock that lasts kUnavailable, a damaged file kDataLoss, what the
/// schema does not take kInvalidArgument.
/// `file` is for a connection that did not come about: it does not know its file's name.
Error sqlite_error(sqlite3* db, int result, const std::string& file = {});

/// Whether what was to be stored is itself the reason why it was not, and would be again. Everything else is
/// trouble of the store, such as a disk that is full, fails, or may not be written any more: it may pass, and
/// nobody who brought something is to blame.
bool is_of_what_is_stored(Code code);

}  // namespace abl::storage
