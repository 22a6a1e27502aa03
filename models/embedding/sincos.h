// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

namespace abl::models {

/// The fixed table of positions: sin(x ω), cos(x ω), sin(y ω), cos(y ω)
/// with ω_i = 10000^(-i/(dim/4-1)), i < dim/4.
/// Shape: [rows · columns, dim], tokens row by row; dim is a multiple of 4, at least 8.
/// Source: the simple ViT that MSF section 3 builds on.
torch::Tensor sincos_2d(std::int64_t rows, std::int64_t columns, std::int64_t dim,
                        torch::Device device = torch::kCPU);

}  // namespace abl::models
