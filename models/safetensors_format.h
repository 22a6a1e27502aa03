// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

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
  torch::ScalarType type;
};
inline constexpr std::array<Dtype, 8> kDtypes{{{"F64", torch::kDouble},
                                               {"F32", torch::kFloat},
                                               {"F16", torch::kHalf},
                                               {"BF16", torch::kBFloat16},
                                               {"I64", torch::kLong},
                                               {"I32", torch::kInt},
                                               {"U8", torch::kByte},
                                               {"BOOL", torch::kBool}}};

}  // namespace abl::models::safetensors
