// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

namespace abl::models {

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
