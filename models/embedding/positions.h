// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include "models/layers/layers.h"

namespace abl::models {

/// The fixed part of XCiT's positions: for row y and column x, counted from 1, the angles 2π y/rows and
/// 2π x/columns over 10000^(2⌊i/2⌋/32), i < 32, sine at even and cosine at odd i; first of y, then of x.
/// Shape: [1, 64, rows, columns].
torch::Tensor fourier_table(std::int64_t rows, std::int64_t columns, torch::Device device = torch::kCPU);

/// Positions for a map of tokens of any size: the table of that size, linearly mapped to `dim`. The table of
/// the usual size is there from the start; one of another size is computed anew, which is a small part of
/// what a model does, so that `forward` keeps nothing.
/// Parameters: `token_projection.weight` [dim, 64, 1, 1] and `token_projection.bias`.
/// Shape: [1, dim, rows, columns].
/// Source: XCiT section 3.3 (positional encoding in 64 dimensions, then a linear layer).
class FourierPositionsImpl : public torch::nn::Module {
 public:
  /// `rows`, `columns`: the usual size.
  FourierPositionsImpl(std::int64_t dim, std::int64_t rows, std::int64_t columns,
                       torch::Device device = torch::kCPU);
  torch::Tensor forward(std::int64_t rows, std::int64_t columns);

 private:
  Conv2d token_projection_{nullptr};
  FixedTable table_{nullptr};
};
using FourierPositions = Part<FourierPositionsImpl>;

/// The fixed table of positions: sin(x ω), cos(x ω), sin(y ω), cos(y ω)
/// with ω_i = 10000^(-i/(dim/4-1)), i < dim/4.
/// Shape: [rows · columns, dim], tokens row by row; dim is a multiple of 4, at least 8.
/// Source: the simple ViT that MSF section 3 builds on.
torch::Tensor sincos_2d(std::int64_t rows, std::int64_t columns, std::int64_t dim,
                        torch::Device device = torch::kCPU);

/// A learned table of positions for another image size: the entries of the leading `extra` tokens (class
/// token) stay, those of a square map are resized to rows × columns by antialiased bicubic interpolation.
/// Shape: table [1, extra + S·S, dim] -> [1, extra + rows·columns, dim].
/// Throws: c10::ValueError when the table is of no square map, or the new map is empty.
torch::Tensor interpolate_positions(const torch::Tensor& table, std::int64_t rows, std::int64_t columns,
                                    std::int64_t extra = 1);

}  // namespace abl::models
