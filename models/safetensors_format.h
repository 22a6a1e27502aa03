// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

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
inline constexpr std::string_view kTruth = "BOOL";
inline constexpr std::array<Dtype, 8> kDtypes{
    {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"I32", 4}, {"U8", 1}, {kTruth, 1}}};

}  // namespace abl::models::safetensors
