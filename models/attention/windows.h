// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

namespace abl::models {

/// A map of tokens, cut into square windows after a cyclic shift. A map that the windows do not divide is
/// filled up with zeros at its lower and right edge.
struct WindowGrid {
  std::int64_t rows = 0, columns = 0;  ///< of the map, in tokens
  std::int64_t window = 0;             ///< side of a window, in tokens
  std::int64_t shift = 0;              ///< tokens that the map moves up and to the left

  std::int64_t down() const { return (rows + window - 1) / window; }       ///< windows of a column
  std::int64_t across() const { return (columns + window - 1) / window; }  ///< windows of a row
  std::int64_t windows() const { return down() * across(); }
  std::int64_t tokens() const { return window * window; }  ///< of one window
  bool operator==(const WindowGrid&) const = default;
};

/// The windows of a block over square maps: shifted by half a window if asked for. A map no larger than the
/// window is one window of its own size, unshifted.
WindowGrid fit_windows(std::int64_t side, std::int64_t window, bool shifted);

/// Windows of the same side over maps of any size: a map no larger than the window is one, filled up and
/// unshifted.
WindowGrid spread_windows(std::int64_t rows, std::int64_t columns, std::int64_t window, bool shifted);

/// The windows of every map, W of each, in row-major order.
/// Shape: map [B, rows, columns, C] -> [B·W, N, C].
torch::Tensor cut_windows(const torch::Tensor& map, const WindowGrid& grid);

/// The inverse of `cut_windows`.
/// Shape: windows [B·W, N, C] -> [B, rows, columns, C].
torch::Tensor join_windows(const torch::Tensor& windows, const WindowGrid& grid);

/// What is added to the scaled logits so that tokens which the shift brought together from opposite edges of
/// the map do not see each other: 0 within a region, -100 (the release's value) between two. Undefined
/// without a shift.
/// Shape: [W, N, N].
/// Source: Swin section 3.2, Figure 4; the release.
torch::Tensor shift_mask(const WindowGrid& grid, torch::Device device);

/// For every pair of tokens of a window the row of the position bias table that holds their relative
/// position.
/// Shape: [N·N], values below (2·window - 1)².
torch::Tensor relative_positions(std::int64_t window, torch::Device device);

}  // namespace abl::models
