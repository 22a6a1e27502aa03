// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

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

/// "3 sweeps, 44 trials, 51 runs, 12,345 points; 1.2 MiB, schema 8, contents 3f2a…".
std::string contents_text(const std::filesystem::path& file, const storage::Contents& contents);
nlohmann::ordered_json contents_json(const std::filesystem::path& file, const storage::Contents& contents);

}  // namespace abl::cli
