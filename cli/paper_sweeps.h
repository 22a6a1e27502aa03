// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sweeps/paper_sweeps.h"

namespace abl::cli {

using sweeps::PaperSweep;

/// The folder with a folder for each paper: of this program's installation, or of the source tree that it was
/// built in; nothing where neither has one.
std::optional<std::filesystem::path> papers_folder();

/// Every table that comes with the program, in the order of `sweeps::paper_sweeps_in`; those of one paper
/// where one is named.
/// Throws: Error{kNotFound} where there is none, with the nearest paper.
std::vector<PaperSweep> paper_sweeps(const std::string& paper = {});

/// "msf/table-1", also written with ".yaml".
/// Throws: Error{kNotFound} with the nearest name.
PaperSweep paper_sweep(const std::string& name);

/// The file that FILE of a command line means: a file, where there is one, otherwise a table of a paper
/// ("msf/table-1"). What is neither stays as it is, for who reads it to say so.
/// Throws: Error{kNotFound} with the nearest name where a paper is named that has no such table.
std::filesystem::path sweep_file_of(const std::string& written);

}  // namespace abl::cli
