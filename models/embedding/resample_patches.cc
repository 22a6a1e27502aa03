// SPDX-License-Identifier: Apache-2.0
#include "models/embedding/resample_patches.h"

namespace abl::models {

torch::Tensor resample_patches(const torch::Tensor& weight, std::int64_t patch) {
  TORCH_CHECK_VALUE(patch > 0 && weight.dim() == 4 && weight.size(2) == weight.size(3), "a kernel of shape ",
                    weight.sizes(), " for patches of ", patch, "; [dim, channels, side, side] is expected");
  const auto old = weight.size(2), dim = weight.size(0), channels = weight.size(1);
  if (old == patch) return weight;
  // what becomes of each pixel of an old patch when it is resized: one column of R for each
  const auto pixels = torch::eye(old * old, torch::kDouble).view({old * old, 1, old, old});
  const auto resized = at::_upsample_bicubic2d_aa(pixels, {patch, patch}, /*align_corners=*/false);
  const auto solve = torch::linalg_pinv(resized.view({old * old, patch * patch}));  // (Rᵀ)⁺: [new², old²]
  return weight.to(torch::kDouble)
      .reshape({dim * channels, old * old})
      .matmul(solve.t())
      .view({dim, channels, patch, patch})
      .to(weight.scalar_type());
}

}  // namespace abl::models
