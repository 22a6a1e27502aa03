// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <map>
#include <string>

namespace abl::models {

/// What a file in the safetensors format holds; dtypes F64 F32 F16 BF16 I64 I32 U8 BOOL.
struct TensorFile {
  std::map<std::string, torch::Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// Reads a file. The tensors lie in a private mapping of it: nothing is copied until it is written to, and
/// the mapping lasts as long as the last of them. The file must not be truncated meanwhile
/// (`write_safetensors` replaces, it never truncates).
/// Throws: Error{kNotFound, …} when it cannot be opened;
/// Error{kDataLoss} when it is not a whole and well-formed file.
TensorFile read_safetensors(const std::filesystem::path& file);

/// Replaces `file` as a whole: written beside it, synced, renamed. After a crash there is the old file or the
/// new one.
/// Throws: Error (kResourceExhausted when the disk is full), the old file is then untouched;
/// Error{kInvalidArgument} for a tensor whose type the format does not have.
void write_safetensors(const std::filesystem::path& file, const TensorFile& content);

}  // namespace abl::models
