// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "models/safetensors/layout.h"
#include "tests/fuzz/target.h"

namespace abl::fuzz {

void read_safetensors(std::string_view bytes) {
  namespace safetensors = models::safetensors;
  const std::vector<char> exact{bytes.begin(), bytes.end()};  // no room behind its end
  try {
    const auto layout = safetensors::read_layout({exact.data(), exact.size()}, "w.safetensors");
    std::uint64_t sum = 0, end = 0;
    for (const auto& tensor : layout.tensors) {
      require(tensor.begin <= tensor.end && tensor.end <= exact.size(), "a tensor lies in its file");
      std::uint64_t size = safetensors::kDtypes.at(tensor.dtype).bytes;
      for (const std::int64_t side : tensor.shape) size *= static_cast<std::uint64_t>(side);
      require(size == tensor.end - tensor.begin, "a tensor is as long as its shape says");
      for (std::uint64_t at = tensor.begin; at < tensor.end; ++at)
        sum += static_cast<unsigned char>(exact[at]);
      end += size;
    }
    require(end <= exact.size(), "no tensor lies over another");
    require(sum <= 255 * exact.size(), "every byte can be read");
  } catch (const Error& error) {
    require(error.code() == Code::kDataLoss, "a damaged file is damaged");
    require_printable(error.what());
  }
}

}  // namespace abl::fuzz
