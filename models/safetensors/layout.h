// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// What reader and writer agree on. A file is the length of the header (8 bytes), the header (JSON: name ->
/// dtype, shape, [begin, end) in the data) and the data.
namespace abl::models::safetensors {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

inline constexpr std::uint64_t kLengthBytes = 8;
inline constexpr std::string_view kMetadata = "__metadata__";

struct Dtype {
  std::string_view name;
  std::uint64_t bytes;  ///< of one element
};
inline constexpr std::string_view kBool = "BOOL";
inline constexpr std::array<Dtype, 8> kDtypes{
    {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"I32", 4}, {"U8", 1}, {kBool, 1}}};

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
