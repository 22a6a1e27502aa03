// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/image_source.h"
#include "data/own_format.h"

namespace abl::data {

struct LoadedFormat {
  const OwnFormat* format = nullptr;
  std::string sha256;  ///< of its file: part of the fingerprint of what it reads
};

/// Those that kFormatsVariable names, loaded when they are asked for first.
/// Throws: what load_plugin_library throws; Error{kInvalidArgument} for a format whose name is empty or
/// another's.
const std::vector<LoadedFormat>& own_formats();

/// Whether a folder is of the format. Throws: Error{kInvalidArgument} with its name where it throws.
bool is_in(const LoadedFormat& loaded, const std::filesystem::path& root);

/// The fingerprint is of the file of the format, of classes and labels, and of the names and sizes of all
/// files below `root`. Throws: Error{kInvalidArgument} where the format throws, or says what cannot be: no
/// class, labels without one.
DataSet open_own(const LoadedFormat& loaded, const config::DataConfig& config,
                 const std::filesystem::path& root);

}  // namespace abl::data
