// SPDX-License-Identifier: Apache-2.0
#include "models/weights/safetensors.h"
#include "tests/safetensors/hostile_reader.h"

namespace abl::models {

std::uint64_t read_every_byte(const std::filesystem::path& file) {
  std::uint64_t bytes = 0;
  for (const auto& [name, tensor] : read_safetensors(file).tensors)
    bytes += tensor.sum().numel() * tensor.nbytes();
  return bytes;
}

}  // namespace abl::models
