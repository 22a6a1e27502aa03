// SPDX-License-Identifier: Apache-2.0
#include "models/embedding/resample_patches.h"

namespace abl::models {

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
