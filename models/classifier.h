// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

namespace abl::models {

/// What every family builds: images in, one logit for each class out.
/// Shape: images [B, 3, S, S] -> [B, classes].
class Classifier : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const torch::Tensor& images) = 0;
};

}  // namespace abl::models
