// SPDX-License-Identifier: Apache-2.0
#include "models/attention/kernel.h"

#include <cmath>

#include "models/part.h"

namespace abl::models {

FusedOperands gaussian_operands(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v) {
  const auto d = q.size(-1), width = (d + 2 + 7) / 8 * 8;
  const auto wide = k.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat;
  const auto half_norm = k.to(wide).square().sum(-1, /*keepdim=*/true) * -0.5;  // [B, H, N, 1]
  const auto hi = half_norm.to(k.scalar_type());
  // d(hi + lo)/d(half_norm) is 1 and hi carries all of it, so lo stays out of the backward pass
  const auto lo = (half_norm.detach() - hi.detach()).to(k.scalar_type());

  const auto like = [d](const torch::Tensor& x, std::int64_t columns, double value) {
    auto shape = x.sizes().vec();
    shape.back() = columns;
    return torch::full(shape, value, x.options());
  };
  return {.q = torch::cat({q, like(q, 2, 1.0), like(q, width - d - 2, 0.0)}, -1),
          .k = torch::cat({k, hi, lo, like(k, width - d - 2, 0.0)}, -1),
          .v = torch::constant_pad_nd(v, {0, width - d}),
          .scale = 1.0 / std::sqrt(static_cast<double>(d))};
}

torch::Tensor attend(Kernel kernel, const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v) {
  TORCH_CHECK_VALUE(kernel != Kernel::kNone, "a layer without attention has no kernel to attend with");
  if (kernel == Kernel::kDot || literal()) return at::scaled_dot_product_attention(q, k, v);
  const auto fused = gaussian_operands(q, k, v);
  const auto out = at::scaled_dot_product_attention(fused.q, fused.k, fused.v, /*attn_mask=*/{},
                                                    /*dropout_p=*/0.0, /*is_causal=*/false, fused.scale);
  return out.narrow(-1, 0, v.size(-1));
}

}  // namespace abl::models
