// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "exchange/results.h"

/// A file, a kind. As `read_results`.
namespace abl::exchange {

std::vector<std::string> read_csv(const std::filesystem::path& file, const Mapping& mapping, Sink& sink);
std::vector<std::string> read_json_lines(const std::filesystem::path& file, const Mapping& mapping,
                                         Sink& sink);
/// A file, or a folder with a folder for each run.
std::vector<std::string> read_event_files(const std::filesystem::path& path, const Mapping& mapping,
                                          Sink& sink);
/// A folder `mlruns`, or MLflow's SQLite file.
std::vector<std::string> read_mlflow(const std::filesystem::path& path, const Mapping& mapping, Sink& sink);

}  // namespace abl::exchange
