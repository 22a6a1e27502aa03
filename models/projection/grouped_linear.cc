// SPDX-License-Identifier: Apache-2.0
#include "models/projection/grouped_linear.h"

namespace abl::models {

torch::Tensor grouped_linear(const torch::Tensor& x, const torch::Tensor& weight, std::int64_t groups,
                             Layout layout, const torch::Tensor& bias) {
  if (groups == 1) return torch::linear(x, weight, bias);
  const auto G = groups, out = weight.size(0);
  const auto cut = x.reshape({-1, G, x.size(-1) / G}).transpose(0, 1);       // [G, T, in/G]
  const auto stored = weight.view({G, out / G, weight.size(1)});             // [G, out/G, in/G]
  const auto y = cut.bmm(stored.mT());                                       // [G, T, out/G]
  const auto joined = layout == Layout::kInterleaved ? y.permute({1, 2, 0})  // [T, out/G, G]
                                                     : y.transpose(0, 1);    // [T, G, out/G]
  auto shape = x.sizes().vec();
  shape.back() = out;
  const auto result = joined.reshape(shape);
  return bias.defined() ? result + bias.to(result.scalar_type()) : result;
}

}  // namespace abl::models
