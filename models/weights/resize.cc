// SPDX-License-Identifier: Apache-2.0
#include "models/weights/resize.h"

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

torch::Tensor resample_patches(const torch::Tensor& weight, std::int64_t patch) {
  TORCH_CHECK_VALUE(patch > 0 && weight.dim() == 4 && weight.size(2) == weight.size(3), "a kernel of shape ",
                    weight.sizes(), " for patches of ", patch, "; [dim, channels, side, side] is expected");
  const auto old = weight.size(2);
  if (old == patch) return weight;
  // Resizing is R = r ⊗ r of rows and columns, so that (Rᵀ)⁺ = (rᵀ)⁺ ⊗ (rᵀ)⁺. Columns alone are resized of
  // an identity: what becomes of each pixel.
  const auto pixels = torch::eye(old, torch::kDouble).view({1, 1, old, old});
  const auto resized = at::_upsample_bicubic2d_aa(pixels, {old, patch}, /*align_corners=*/false);  // rᵀ
  const auto solve = torch::linalg_pinv(resized.view({old, patch}));  // [new, old]
  return solve.matmul(weight.to(torch::kDouble)).matmul(solve.t()).to(weight.scalar_type());
}

}  // namespace abl::models
