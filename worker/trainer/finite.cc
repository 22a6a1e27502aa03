// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/finite.h"

namespace abl::trainer {
namespace {

/// A number is not finite where all bits of its exponent are set.
template <class Bits>
bool all_below(const torch::Tensor& tensor, Bits exponent) {
  const auto* numbers = static_cast<const Bits*>(tensor.const_data_ptr());
  bool found = false;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) found |= (numbers[i] & exponent) == exponent;
  return !found;
}

}  // namespace

bool is_finite(const torch::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case torch::kDouble:
      return all_below<std::uint64_t>(tensor, 0x7ff0'0000'0000'0000);
    case torch::kFloat:
      return all_below<std::uint32_t>(tensor, 0x7f80'0000);
    case torch::kBFloat16:
      return all_below<std::uint16_t>(tensor, 0x7f80);
    case torch::kHalf:
      return all_below<std::uint16_t>(tensor, 0x7c00);
    default:
      return true;
  }
}

}  // namespace abl::trainer
