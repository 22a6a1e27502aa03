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
