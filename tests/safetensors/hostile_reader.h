// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

namespace abl::models {

/// Reads a safetensors file and every byte of its tensors; how many these are. One program reads it as the
/// models do, another one without LibTorch, whose memory the address sanitizer watches.
std::uint64_t read_every_byte(const std::filesystem::path& file);

}  // namespace abl::models
