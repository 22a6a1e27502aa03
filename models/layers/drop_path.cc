// SPDX-License-Identifier: Apache-2.0
#include "models/layers/drop_path.h"

namespace abl::models {

std::vector<double> drop_rates(const DropPathOptions& options, std::int64_t layers) {
  const auto [rate, rule] = options;
  TORCH_CHECK_VALUE(rate >= 0 && rate < 1, "drop_path is ", rate, "; at least 0 and less than 1 is expected");
  std::vector<double> rates(static_cast<std::size_t>(layers), rate);
  if (rule == DropPathRule::kLinear)
    for (std::int64_t layer = 0; layer < layers; ++layer)  // a single layer is the first
      rates[static_cast<std::size_t>(layer)] =
          layer == 0 ? 0 : rate * static_cast<double>(layer) / static_cast<double>(layers - 1);
  return rates;
}

torch::Tensor drop_path(const torch::Tensor& branch, double rate, bool is_training) {
  if (rate == 0 || !is_training) return branch;
  std::vector<std::int64_t> shape(static_cast<std::size_t>(branch.dim()), 1);
  shape.front() = branch.size(0);
  const auto factors =
      torch::empty(shape, branch.options()).bernoulli_(1 - rate).div_(1 - rate);  // [B, 1, ...]
  return branch * factors;
}

}  // namespace abl::models
