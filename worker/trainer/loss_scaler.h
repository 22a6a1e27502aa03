// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include <map>
#include <string>

#include "worker/trainer/named_tensors.h"

namespace abl::trainer {

/// Keeps gradients in the range of half precision: the loss is multiplied by a factor that doubles after
/// 2,000 good steps and is halved after a gradient that is not finite; that step is left out. Nothing waits
/// for the device.
class LossScaler {
 public:
  explicit LossScaler(torch::Device device);

  torch::Tensor scale(const torch::Tensor& loss) const { return loss * scale_; }
  /// Divides the gradients by the factor. Returns: [], float32, 1 where any is not finite, otherwise 0.
  torch::Tensor unscale(const NamedTensors& weights);

  double factor() const { return scale_.item<double>(); }
  /// By name; they share memory.
  std::map<std::string, torch::Tensor> state() const;

 private:
  torch::Tensor scale_, good_steps_;
};

}  // namespace abl::trainer
