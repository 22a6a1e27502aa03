// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/file_lock.h"
#include "cli/context.h"
#include "cli/terminal.h"
#include "storage/backup.h"

namespace abl::cli {

/// The bar of what copies and checks results files, phase by phase.
class StoreProgress {
 public:
  explicit StoreProgress(const Terminal& terminal) : terminal_{terminal} {}
  storage::StoreFile::Progress callback();
  void end() { progress_.reset(); }

 private:
  const Terminal& terminal_;
  std::string what_;
  std::unique_ptr<Progress> progress_;
};

/// The results file of --store, of a running `up`, or of the home.
std::filesystem::path store_in_use(const Context& context);

/// Whether a copy or an archive of `from` may be written to `to`; `example`: what a file of it is called.
/// Throws: Error{kInvalidArgument} where `to` is a folder or `from` itself, {kAlreadyExists} where it is
/// there and not to be replaced.
void expect_place_for(const std::filesystem::path& to, const std::filesystem::path& from, bool force,
                      const char* example);

/// Nobody writes the file while it lives. Throws: Error{kUnavailable} naming who does.
FileLock lock_store(const Context& context, const std::filesystem::path& store);

/// "3 sweeps, 44 trials, 51 runs, 12,345 points; 1.2 MiB, schema 8, contents 3f2a…".
std::string contents_text(const std::filesystem::path& file, const storage::Contents& contents);
nlohmann::ordered_json contents_json(const std::filesystem::path& file, const storage::Contents& contents);

}  // namespace abl::cli
