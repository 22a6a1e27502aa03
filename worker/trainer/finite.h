// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

namespace abl::trainer {

/// Whether every number of a tensor is finite: neither NaN nor an infinity. On the CPU, contiguous. In the
/// calling thread alone and without memory of its own: it is asked of whole checkpoints beside a training.
bool is_finite(const torch::Tensor& tensor);

}  // namespace abl::trainer
