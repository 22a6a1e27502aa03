// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "storage/database.h"

namespace abl::storage {

/// Removes a results file and what SQLite keeps beside it, as far as they are there.
void remove_database(const std::filesystem::path& file);

/// SHA-256 of all that a results file holds, but for the files of checkpoints, which have their own, and for
/// this digest. Throws: Error{kDataLoss} and others for a file that cannot be read to its end.
std::string content_digest(const std::filesystem::path& file);

/// A results file at today's schema: itself, or, of an older one, a copy that is brought up to date, so that
/// whoever only reads changes nothing. The copy lies beside `near` and goes with this object.
/// What is no results file, or cannot be read, is left to who opens it. Throws: Error{kDataLoss} for an
/// archive that is not what was written; kResourceExhausted, or as `migrate`.
class UpToDate {
 public:
  UpToDate(const std::filesystem::path& file, const std::filesystem::path& near);
  ~UpToDate();
  UpToDate(const UpToDate&) = delete;
  UpToDate& operator=(const UpToDate&) = delete;
  const std::filesystem::path& file() const { return copy_.empty() ? file_ : copy_; }
  bool is_copy() const { return !copy_.empty(); }

 private:
  void remove();
  std::filesystem::path file_, copy_;
};

}  // namespace abl::storage
