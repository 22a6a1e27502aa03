// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exchange/results.h"
#include "storage/imported_results.h"

namespace abl::cli {

struct ImportOptions {
  exchange::Mapping mapping{};
  std::optional<exchange::Format> format{};  ///< nothing: what it is by its content
  std::string sweep;                         ///< where the file says none; empty: the file's name
  std::string prefix;                        ///< of the ids of its rows
  std::string origin;                        ///< what trials and tables call the file; empty: its name
  std::filesystem::path table;  ///< what `ablate table SWEEP --json` printed; empty: columns by name
  std::function<void(std::uint64_t points, std::uint64_t of)>
      progress{};  ///< while they are stored; may be empty
};

/// What became of one file, of one sweep of it.
struct ImportedFile {
  std::string file, sweep;
  std::string format;
  bool is_new_sweep = false;
  std::uint32_t rows = 0, runs = 0;  ///< new ones
  std::uint32_t unchanged = 0;       ///< runs that are there already, the same
  std::uint64_t points = 0;
  std::vector<std::string> notes;
};

/// Reads a file twice: first all of it, so that what cannot be read changes nothing, then into the store, in
/// one transaction. Throws: Error{kInvalidArgument} "FILE:LINE:COLUMN: …"; kFailedPrecondition where a run is
/// there with other points, or a row is trained.
std::vector<ImportedFile> import_results(storage::Database& db, const std::filesystem::path& file,
                                         const ImportOptions& options);
/// What that would import; changes nothing. `db`: null where there is no results file yet.
std::vector<ImportedFile> would_import(storage::Database* db, const std::filesystem::path& file,
                                       const ImportOptions& options);

}  // namespace abl::cli
