// SPDX-License-Identifier: Apache-2.0
#include "models/embedding/interpolate_bias_table.h"

#include <cmath>

namespace abl::models {

torch::Tensor interpolate_bias_table(const torch::Tensor& table, std::int64_t window) {
  TORCH_CHECK_VALUE(window > 0 && table.dim() == 2 && table.size(0) > 0, "a table of biases of shape ",
                    table.sizes(), " for windows of ", window, "; [(2 window - 1)^2, heads] is expected");
  const auto heads = table.size(1), places = 2 * window - 1;
  const auto side = std::llround(std::sqrt(static_cast<double>(table.size(0))));
  TORCH_CHECK_VALUE(side * side == table.size(0) && side % 2 == 1, "a table of ", table.size(0),
                    " biases is of no square window");
  if (side == places) return table;
  const auto map = table.to(torch::kFloat).t().reshape({1, heads, side, side});
  return at::upsample_bicubic2d(map, {places, places}, /*align_corners=*/false)
      .view({heads, places * places})
      .t()
      .to(table.scalar_type());
}

}  // namespace abl::models
