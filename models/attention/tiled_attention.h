// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <optional>

#include "models/attention/kernel.h"

namespace abl::models {

/// softmax(scale · kernel(q, k) + terms) v, block by block, so that the scores of a block stay in the cache.
/// For processors, where PyTorch's fused attention takes longer in bfloat16, does not fuse trained terms and
/// wants q, k and v of one width.
/// Scores, softmax and the gradients of both are of 32 bits and more, whatever the type of the operands: a
/// score of 800, as keys far from 0 have it, would be rounded to multiples of 4 in bfloat16. Where no
/// instruction multiplies bfloat16, and in float16, all products are of 32 bits.
/// The Gaussian adds -½‖k‖² to the scores. Distances do not depend on the origin: where operands are widened
/// it is put into the mean key.
/// Keeps its operands for the backward pass, and the softmax of up to 64 tokens, which is hardly larger; of
/// more tokens it is computed again, so that nothing of N × N elements is kept.
/// Shape: terms [W, H, N, N], in the type of the operands or of 32 bits, of which image i has those of i mod
/// W
///        -> [B, H, N, d], in memory [B, N, H, d].
/// `multiplied`: the type whose products are taken, that of the operands or 32 bits; none: the faster one.
torch::Tensor block_attention(const Operands& operands, const std::optional<torch::Tensor>& terms = {},
                              std::optional<torch::ScalarType> multiplied = {});

/// Whether this processor has instructions that multiply bfloat16 and add in 32 bits. Without them PyTorch's
/// products of bfloat16 take ten times as long as those of float32 and more.
bool multiplies_bfloat16();

/// scale · a b of bfloat16, in float32: neither a sum nor its result is rounded to 16 bits, as PyTorch's own
/// product on processors would. Of matrices of some size it is MKL's, which fused attention uses as well.
/// Shape: a [S, n, k], b [S, k, m] -> [S, n, m].
torch::Tensor wide_product(const torch::Tensor& a, const torch::Tensor& b, double scale);

/// MKL's alone, whatever the sizes; undefined where PyTorch is built without it.
torch::Tensor mkl_wide_product(const torch::Tensor& a, const torch::Tensor& b, double scale);

}  // namespace abl::models
