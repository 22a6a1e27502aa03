// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include <optional>

#include "models/attention/kernel.h"

namespace abl::models {

/// softmax(scale · kernel(q, k) + terms) v, block by block, so that the scores of a block stay in the cache.
/// For processors, where PyTorch's fused attention takes twice to five times as long in bfloat16, does not
/// fuse trained terms and wants q, k and v of one width.
/// Scores and softmax are rounded to the type of the operands, as in attention written out. The Gaussian adds
/// -½‖k‖² to scores of 32 bits and more; to narrower ones it goes as in `as_dot_product`.
/// Keeps its operands for the backward pass, and the softmax of up to 64 tokens, which is hardly larger; of
/// more tokens it is computed again, so that nothing of N × N elements is kept.
/// Shape: terms [W, H, N, N], of which image i has those of i mod W
///        -> [B, H, N, d], in memory [B, N, H, d].
torch::Tensor block_attention(const Operands& operands, const std::optional<torch::Tensor>& terms = {});

}  // namespace abl::models
