// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include <optional>

namespace abl::models {

/// How a query weighs the keys, before the softmax with temperature √d.
enum class Kernel {
  kDot,       ///< q·k: the original transformer (MSF eq. 1)
  kGaussian,  ///< -½‖k-q‖²: mean shift (MSF eq. 11 and 12)
  kNone,      ///< no attention: the branch is left out of the layer, the MLP stays
};

/// What attention is called with so that its plain softmax of products is that of a kernel.
struct FusedOperands {
  torch::Tensor q, k;  ///< [B, H, N, w]
  torch::Tensor v;     ///< [B, H, N, d], d ≤ w
  double scale;
};

/// The Gaussian softmax as a dot product: -½‖k-q‖² = q·k - ½‖k‖² up to a constant for each query, so
/// q' = [q, 1, 1, 0…], k' = [k, hi, lo, 0…], filled up to a multiple of 8.
/// hi is -½‖k‖² (of float sums) rounded to the operands' type and lo is the rest: in bfloat16 hi alone would
/// be wrong by up to 2⁻⁹ of the norm, more than all other errors together.
/// Shape: q, k, v [B, H, N, d] -> q', k' [B, H, N, w], w = d + 2 rounded up to a multiple of 8.
/// Source: MSF supplement, (iii) to (v).
FusedOperands gaussian_operands(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v);

/// Those of a kernel; for an observer that wants the literal form, of the dot product.
/// Throws: c10::ValueError for `Kernel::kNone`.
FusedOperands operands_of(Kernel kernel, const torch::Tensor& q, const torch::Tensor& k,
                          const torch::Tensor& v);

/// PyTorch's `scaled_dot_product_attention`. VALUE is filled up to the others' width, which its fused path
/// needs. `added`: to the scaled scores, [1 or B, H, N, N], or nothing.
/// Shape: -> [B, H, N, d].
torch::Tensor fused_attention(const FusedOperands& operands, const std::optional<torch::Tensor>& added = {});

/// softmax(kernel(q, k) / √d) v, in the fastest way that keeps nothing of N × N elements: fused attention, or
/// `block_attention` where that is faster.
/// Shape: q, k, v [B, H, N, d] -> [B, H, N, d].
torch::Tensor attend(Kernel kernel, const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v);

}  // namespace abl::models
