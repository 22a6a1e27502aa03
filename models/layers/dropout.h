// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

namespace abl::models {

/// Dropout of a model; by default there is none. Each is a probability, at least 0 and below 1.
struct DropoutOptions {
  double head = 0;       ///< of a feature before the head
  double positions = 0;  ///< of a number of a token once its position is added, where positions are
};

/// Sets numbers of `x` to 0 with this probability, and divides the others by 1 - rate. In evaluation and at
/// rate 0 it is `x` itself, and no random number is drawn.
/// Shape: any -> the same.
/// Source: Srivastava et al. (JMLR 2014), section 4; the draws are those of PyTorch's `dropout`.
/// Throws: c10::ValueError when the rate is not a probability below 1.
inline torch::Tensor drop_out(const torch::Tensor& x, double rate, bool is_training) {
  TORCH_CHECK_VALUE(rate >= 0 && rate < 1, "dropout is ", rate, "; at least 0 and less than 1 is expected");
  return rate == 0 || !is_training ? x : torch::dropout(x, rate, /*train=*/true);
}

}  // namespace abl::models
