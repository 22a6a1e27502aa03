// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "models/weights/safetensors.h"

namespace abl::training {

/// Writes a file as models::write_safetensors does, with the CRC-32 of every tensor (its bytes as they lie in
/// the file) and of every other entry of the metadata in an entry "crc32":
///   {"tensors": {NAME: "cbf43926", …}, "metadata": {KEY: …}}
void write_checked(const std::filesystem::path& file, models::TensorFile content);

/// Reads a file as models::read_safetensors does, and compares what it holds with that entry, which is not
/// returned. A file without one, another program's or an older one, is read as it is.
/// Throws: Error{kDataLoss} naming the file and the first tensor that is not as it was written.
models::TensorFile read_checked(const std::filesystem::path& file);

}  // namespace abl::training
