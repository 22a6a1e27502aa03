// SPDX-License-Identifier: Apache-2.0
#include "models/embedding/positions.h"

#include <cmath>
#include <numbers>

namespace abl::models {
namespace {

constexpr std::int64_t kAngles = 32;  ///< for each of the two coordinates

/// Sines and cosines of one coordinate, places 1 to `count`.
/// Shape: [count, 32].
torch::Tensor waves(std::int64_t count, torch::Device device) {
  const auto in_double = torch::dtype(torch::kDouble).device(device);
  const auto turn = 2.0 * std::numbers::pi / (static_cast<double>(count) + 1e-6);
  const auto place = torch::arange(1, count + 1, in_double) * turn;
  const auto exponent = torch::arange(0, kAngles, 2, in_double) / static_cast<double>(kAngles);
  const auto angle = place.outer(torch::pow(10000.0, -exponent));          // [count, 16]
  return torch::stack({angle.sin(), angle.cos()}, /*dim=*/-1).flatten(1);  // sine, cosine, sine, …
}

/// What resizes a line of `from` places, bicubic with anti-aliasing: a product, whose backward pass is
/// deterministic on GPUs too, as that of the resizing operator is not.
/// Shape: [to, from].
torch::Tensor resize_matrix(std::int64_t from, std::int64_t to, torch::Device device) {
  const torch::NoGradGuard no_grad;
  const auto lines = torch::eye(from, torch::dtype(torch::kFloat).device(device)).view({1, 1, from, from});
  return at::_upsample_bicubic2d_aa(lines, {to, from}, /*align_corners=*/false).view({to, from});
}

}  // namespace

torch::Tensor fourier_table(std::int64_t rows, std::int64_t columns, torch::Device device) {
  const auto y = waves(rows, device).unsqueeze(1).expand({rows, columns, kAngles});
  const auto x = waves(columns, device).unsqueeze(0).expand({rows, columns, kAngles});
  return torch::cat({y, x}, -1).permute({2, 0, 1}).unsqueeze(0).to(torch::kFloat).contiguous();
}

FourierPositionsImpl::FourierPositionsImpl(std::int64_t dim, std::int64_t rows, std::int64_t columns,
                                           torch::Device device) {
  token_projection_ = register_module(
      "token_projection", Conv2d{Conv2dOptions{.in = 2 * kAngles, .out = dim, .kernel = 1}, device});
  table_ = register_module("table", FixedTable{fourier_table(rows, columns, device)});
}

torch::Tensor FourierPositionsImpl::forward(std::int64_t rows, std::int64_t columns) {
  const auto& usual = table_->table;
  const bool is_usual = rows == usual.size(2) && columns == usual.size(3);
  const auto table = is_usual ? usual : fourier_table(rows, columns, usual.device());
  return token_projection_(table.to(token_projection_->weight.scalar_type()));
}

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

  const c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::autocast_dispatch_keyset};  // in float32, always
  const auto map = table.narrow(1, extra, places).to(torch::kFloat).reshape({side, side * D});
  const auto down = resize_matrix(side, rows, table.device()),
             across = resize_matrix(side, columns, table.device());
  const auto resized = across.matmul(down.matmul(map).view({rows, side, D})).view({1, rows * columns, D});
  return torch::cat({table.narrow(1, 0, extra), resized.to(table.scalar_type())}, 1);
}

}  // namespace abl::models
