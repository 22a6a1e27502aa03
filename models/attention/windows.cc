// SPDX-License-Identifier: Apache-2.0
#include "models/attention/windows.h"

namespace abl::models {
namespace {

/// Shape: [B, P, P, C] -> [B·W, N, C]; `window` divides P.
torch::Tensor partition(const torch::Tensor& map, std::int64_t window) {
  const auto B = map.size(0), C = map.size(3), rows = map.size(1) / window;
  return map.reshape({B, rows, window, rows, window, C})
      .permute({0, 1, 3, 2, 4, 5})  // [B, rows, columns, window, window, C]
      .reshape({B * rows * rows, window * window, C});
}

}  // namespace

WindowGrid fit_windows(std::int64_t side, std::int64_t window, bool shifted) {
  if (side <= window) return {.side = side, .window = side};
  return {.side = side, .window = window, .shift = shifted ? window / 2 : 0};
}

torch::Tensor cut_windows(const torch::Tensor& map, const WindowGrid& grid) {
  auto x = grid.shift ? map.roll({-grid.shift, -grid.shift}, {1, 2}) : map;
  if (const auto fill = grid.padded_side() - grid.side)
    x = torch::constant_pad_nd(x, {0, 0, 0, fill, 0, fill});
  return partition(x, grid.window);
}

torch::Tensor join_windows(const torch::Tensor& windows, const WindowGrid& grid) {
  const auto side = grid.side, padded = grid.padded_side(), rows = padded / grid.window, C = windows.size(2);
  auto map = windows.reshape({-1, rows, rows, grid.window, grid.window, C})
                 .permute({0, 1, 3, 2, 4, 5})  // [B, rows, window, columns, window, C]
                 .reshape({-1, padded, padded, C})
                 .narrow(1, 0, side)
                 .narrow(2, 0, side);
  return grid.shift ? map.roll({grid.shift, grid.shift}, {1, 2}) : map;
}

torch::Tensor shift_mask(const WindowGrid& grid, torch::Device device) {
  if (grid.shift == 0) return {};
  const auto P = grid.padded_side();
  const auto place = torch::arange(P, torch::device(device));
  const auto part = (place >= P - grid.window).to(torch::kLong) + (place >= P - grid.shift).to(torch::kLong);
  const auto region = part.unsqueeze(1) * 3 + part;                                   // [P, P]
  const auto regions = partition(region.view({1, P, P, 1}), grid.window).squeeze(2);  // [W, N]
  return (regions.unsqueeze(1) != regions.unsqueeze(2)).to(torch::kFloat) * -100.0;
}

torch::Tensor relative_positions(std::int64_t window, torch::Device device) {
  const auto token = torch::arange(window * window, torch::device(device));
  const auto row = token.div(window, "floor"), column = token.remainder(window);
  const auto difference = [&](const torch::Tensor& x) {
    return x.unsqueeze(1) - x + (window - 1);
  };  // [N, N]
  return (difference(row) * (2 * window - 1) + difference(column)).flatten();
}

}  // namespace abl::models
