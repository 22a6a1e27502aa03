// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "worker/trainer/data/image_source.h"

namespace abl::trainer {

/// What a folder holds, by the first files of a known format, or that it is a packed file: what is looked at
/// before anything is trained. Whether all of it is there, and how many images, only opening it says.
/// Throws: Error{kNotFound} listing what was looked for; of a packed file Error{kDataLoss}.
std::string recognise(const std::filesystem::path& root);

/// Recognises what a folder holds, or takes a packed file, and opens it. To add a format: a source file that
/// opens it, a line in the table of formats.cc, and a section in docs/data.md.
/// Throws: Error{kNotFound} listing what was looked for; what the format throws.
DataSet open_stored(const config::DataConfig& config, const std::filesystem::path& root);

}  // namespace abl::trainer
