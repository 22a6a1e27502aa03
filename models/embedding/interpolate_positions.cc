// SPDX-License-Identifier: Apache-2.0
#include "models/embedding/interpolate_positions.h"

#include <cmath>

namespace abl::models {

torch::Tensor interpolate_positions(const torch::Tensor& table, std::int64_t rows, std::int64_t columns,
                                    std::int64_t extra) {
  TORCH_CHECK_VALUE(rows > 0 && columns > 0, "a map of ", rows, " x ", columns,
                    " tokens; both must be positive");
  TORCH_CHECK_VALUE(table.dim() == 3 && table.size(0) == 1 && extra >= 0 && table.size(1) > extra,
                    "a table of positions of shape ", table.sizes(), " with ", extra,
                    " leading tokens; [1, leading tokens and a square map, width] is expected");
  const auto places = table.size(1) - extra, D = table.size(2);
  const auto side = std::llround(std::sqrt(static_cast<double>(places)));
  TORCH_CHECK_VALUE(side * side == places, "a table of ", places, " positions is of no square map");
  if (rows == side && columns == side) return table;

  const auto map = table.narrow(1, extra, places).to(torch::kFloat).view({1, side, side, D});
  const auto resized = at::_upsample_bicubic2d_aa(map.permute({0, 3, 1, 2}), {rows, columns},
                                                  /*align_corners=*/false)
                           .permute({0, 2, 3, 1})
                           .reshape({1, rows * columns, D});
  return torch::cat({table.narrow(1, 0, extra), resized.to(table.scalar_type())}, 1);
}

}  // namespace abl::models
