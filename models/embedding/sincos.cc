// SPDX-License-Identifier: Apache-2.0
#include "models/embedding/sincos.h"

namespace abl::models {

torch::Tensor sincos_2d(std::int64_t rows, std::int64_t columns, std::int64_t dim, torch::Device device) {
  TORCH_CHECK_VALUE(dim % 4 == 0 && dim >= 8, "dim is ", dim,
                    "; sine and cosine positions need a multiple of 4, at least 8");
  if (device.is_meta())
    return torch::empty({rows * columns, dim}, torch::dtype(torch::kFloat).device(device));
  const auto in_double = torch::dtype(torch::kDouble);  // single precision would be off by 1e-5 at large ω
  const auto F = dim / 4;
  const auto omega = torch::pow(10000.0, -torch::arange(F, in_double) / static_cast<double>(F - 1));
  const auto y = torch::arange(rows, in_double).repeat_interleave(columns).outer(omega);  // [rows·columns, F]
  const auto x = torch::arange(columns, in_double).repeat({rows}).outer(omega);
  return torch::cat({x.sin(), x.cos(), y.sin(), y.cos()}, 1).to(device, torch::kFloat);
}

}  // namespace abl::models
