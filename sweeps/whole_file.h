// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace abl::sweeps {

/// A sweep file as it is planned, submitted and stored.
struct WholeFile {
  std::string path;    ///< as errors name it; "standard input"
  std::string folder;  ///< that of the paths in it; empty where no message could carry its name
  std::string text;
};

/// `file`: a file, or "-" for standard input. Behind its text stand the scale and the texts of other sweeps
/// that its rows name, so that it says itself what it runs. `scale`: that of scales.yaml, which lies beside
/// the file; "full", or nothing: the file as it is. `seeds`: so many in place of those that it has; 0: as it
/// says. Throws: Error naming the file that cannot be read; Error{kNotFound} with the nearest scale, or where
/// none lie
///         there; SweepFileError at a row that names another sweep which is not there.
WholeFile read_whole(const std::filesystem::path& file, const std::string& scale = {}, int seeds = 0);

/// The names of the scales that lie beside a file, in their order; "full" is none of them.
/// Throws: SweepFileError where they are wrong.
std::vector<std::string> scales_of(const std::filesystem::path& file);

}  // namespace abl::sweeps
