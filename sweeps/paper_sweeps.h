// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
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

/// The folder with a folder for each paper: of this program's installation, or of the source tree that it was
/// built in; nothing where neither has one.
std::optional<std::filesystem::path> papers_folder();

/// Every table that comes with the program, in the order of `paper_sweeps_in`; those of one paper where one
/// is named. Throws: Error{kNotFound} where there is none, with the nearest paper.
std::vector<PaperSweep> paper_sweeps(const std::string& paper = {});

/// "msf/table-1", also written with ".yaml". A name is looked up among those that there are: it is never part
/// of a path.
/// Throws: Error{kNotFound} with the nearest name.
PaperSweep paper_sweep(const std::string& name);

/// The file that FILE of a command line means: a file, where there is one, otherwise a table of a paper
/// ("msf/table-1"). What is neither stays as it is, for who reads it to say so.
/// Throws: Error{kNotFound} with the nearest name where a paper is named that has no such table.
std::filesystem::path sweep_file_of(const std::string& written);

}  // namespace abl::sweeps
