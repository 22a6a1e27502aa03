// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace abl::models::safetensors {

/// One tensor as the header describes it.
struct TensorPlace {
  std::string name;
  std::size_t dtype = 0;  ///< its place in kDtypes
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  ///< in the file
};

struct FileLayout {
  std::vector<TensorPlace> tensors;
  std::map<std::string, std::string> metadata;
};

/// What lies where in a file, whoever made it: each tensor within it, as long as its shape and dtype need,
/// none over another. Without LibTorch, so that it can be tested under the address sanitizer, for which
/// LibTorch is not built.
/// Throws: Error{kDataLoss}, in one line that names `file` and tensor, when `bytes` are no whole and
/// well-formed file.
FileLayout read_layout(std::string_view bytes, const std::filesystem::path& file);

}  // namespace abl::models::safetensors
