// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <optional>

#include "models/choices/attention.h"

namespace abl::models {

/// softmax(scale · kernel(q, k)) v is asked for.
struct Operands {
  torch::Tensor q, k;  ///< [B, H, N, w]
  torch::Tensor v;     ///< [B, H, N, d]
  double scale;
  Kernel kernel = Kernel::kDot;
};

/// Scaled by 1/√d; for an observer that wants the literal form, with the dot product.
/// Throws: c10::ValueError for `Kernel::kNone`.
Operands operands_of(Kernel kernel, const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v);

/// The same softmax as one of dot products. The Gaussian: -½‖k-q‖² = q·k - ½‖k‖² up to a constant for each
/// query, so q' = [q, 1, 1, 0…], k' = [k, hi, lo, 0…], filled up to a multiple of 8.
/// hi is -½‖k‖² (of float sums) rounded to the operands' type and lo is the rest: in bfloat16 hi alone would
/// be wrong by up to 2⁻⁹ of the norm, more than all other errors together.
/// Shape: q, k [B, H, N, d] -> q', k' [B, H, N, w], w = d + 2 rounded up to a multiple of 8.
/// Source: MSF supplement, (iii) to (v).
Operands as_dot_product(const Operands& operands);

/// Shows the softmax to an observer that wants to see attention; elsewhere it computes nothing. `added`: to
/// the scaled scores, [1 or W, H, N, N], or nothing.
void show_attention(const Operands& operands, const std::optional<torch::Tensor>& added = {});

/// PyTorch's `scaled_dot_product_attention`. VALUE is filled up to the others' width, which its fused path
/// needs. `added`: to the scaled scores, [1 or B, H, N, N], or nothing.
/// Shape: -> [B, H, N, d].
torch::Tensor fused_attention(const Operands& operands, const std::optional<torch::Tensor>& added = {});

/// Attention in the way that is fastest on the device: `fused_attention` or `block_attention`. Of many tokens
/// nothing of N × N elements is kept.
/// Shape: q, k, v [B, H, N, d] -> [B, H, N, d].
torch::Tensor attend(Kernel kernel, const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v);

}  // namespace abl::models
