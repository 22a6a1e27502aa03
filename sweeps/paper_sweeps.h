// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace abl::sweeps {

/// The sweep file of one of the papers' tables.
struct PaperSweep {
  std::string paper, table;  ///< "msf", "table-1"
  std::filesystem::path file;
  std::string name() const { return paper + "/" + table; }
};

/// Every table in a folder with a folder for each paper: by paper, tables before figures, what a supplement
/// adds last, table 2 before table 10. Other files there have rows whose weights tables take.
/// Throws: std::filesystem::filesystem_error where the folder cannot be read.
std::vector<PaperSweep> paper_sweeps_in(const std::filesystem::path& papers);

}  // namespace abl::sweeps
