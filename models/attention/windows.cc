// SPDX-License-Identifier: Apache-2.0
#include "models/attention/windows.h"

#include <algorithm>

namespace abl::models {
namespace {

/// Shape: [B, down·window, across·window, C] -> [B·W, N, C].
torch::Tensor partition(const torch::Tensor& map, const WindowGrid& grid) {
  const auto B = map.size(0), C = map.size(3), window = grid.window;
  return map.reshape({B, grid.down(), window, grid.across(), window, C})
      .permute({0, 1, 3, 2, 4, 5})  // [B, down, across, window, window, C]
      .reshape({B * grid.windows(), window * window, C});
}

/// Of the places of one axis of a shifted map which of its three parts they belong to.
/// Shape: [windows · window].
torch::Tensor parts_of_axis(std::int64_t windows, const WindowGrid& grid, torch::Device device) {
  const auto end = windows * grid.window;
  const auto place = torch::arange(end, torch::device(device));
  return (place >= end - grid.window).to(torch::kLong) + (place >= end - grid.shift).to(torch::kLong);
}

}  // namespace

WindowGrid fit_windows(std::int64_t side, std::int64_t window, bool shifted) {
  return spread_windows(side, side, std::min(side, window), shifted);
}

WindowGrid spread_windows(std::int64_t rows, std::int64_t columns, std::int64_t window, bool shifted) {
  const bool is_one = rows <= window && columns <= window;
  return {.rows = rows, .columns = columns, .window = window, .shift = shifted && !is_one ? window / 2 : 0};
}

torch::Tensor cut_windows(const torch::Tensor& map, const WindowGrid& grid) {
  auto x = grid.shift ? map.roll({-grid.shift, -grid.shift}, {1, 2}) : map;
  const auto below = grid.down() * grid.window - grid.rows,
             beside = grid.across() * grid.window - grid.columns;
  if (below || beside) x = torch::constant_pad_nd(x, {0, 0, 0, beside, 0, below});
  return partition(x, grid);
}

torch::Tensor join_windows(const torch::Tensor& windows, const WindowGrid& grid) {
  const auto window = grid.window, down = grid.down(), across = grid.across(), C = windows.size(2);
  auto map = windows.reshape({-1, down, across, window, window, C})
                 .permute({0, 1, 3, 2, 4, 5})  // [B, down, window, across, window, C]
                 .reshape({-1, down * window, across * window, C})
                 .narrow(1, 0, grid.rows)
                 .narrow(2, 0, grid.columns);
  return grid.shift ? map.roll({grid.shift, grid.shift}, {1, 2}) : map;
}

torch::Tensor shift_mask(const WindowGrid& grid, torch::Device device) {
  if (grid.shift == 0) return {};
  const auto row = parts_of_axis(grid.down(), grid, device),
             column = parts_of_axis(grid.across(), grid, device);
  const auto region = (row.unsqueeze(1) * 3 + column).view({1, row.numel(), column.numel(), 1});
  const auto regions = partition(region, grid).squeeze(2);  // [W, N]
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
