// SPDX-License-Identifier: Apache-2.0
#include "models/projection/grouped_linear.h"

#include <algorithm>
#include <vector>

namespace abl::models {
namespace {

/// The rows of one projection, each run of them from the group in whose block of all outputs it lies.
torch::Tensor fused_blocks(const torch::Tensor& x, const torch::Tensor& weight, std::int64_t groups,
                           FusedPlace place) {
  const auto out = weight.size(0), in = weight.size(1), block = out * place.count / groups;
  const auto first = out * place.index;
  std::vector<torch::Tensor> runs;
  for (std::int64_t row = 0; row < out;) {
    const auto group = (first + row) / block, rows = std::min(out - row, (group + 1) * block - first - row);
    runs.push_back(torch::linear(x.narrow(-1, group * in, in), weight.narrow(0, row, rows)));
    row += rows;
  }
  return runs.size() == 1 ? runs.front() : torch::cat(runs, -1);
}

}  // namespace

torch::Tensor grouped_linear(const torch::Tensor& x, const torch::Tensor& weight, std::int64_t groups,
                             Layout layout, const torch::Tensor& bias, FusedPlace place) {
  if (groups == 1) return torch::linear(x, weight, bias);
  if (layout == Layout::kFusedBlock) {
    const auto y = fused_blocks(x, weight, groups, place);
    return bias.defined() ? y + bias.to(y.scalar_type()) : y;
  }
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
