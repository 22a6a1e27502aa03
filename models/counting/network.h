// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <functional>
#include <memory>

#include "models/backbones/classifier.h"

namespace abl::models {

/// A network as it is counted: built on the meta device, where nothing is computed and no memory is taken.
struct Network {
  std::function<std::shared_ptr<torch::nn::Module>(torch::Device)> build;
  /// What it says of images. Shape: [B, 3, S, S], of the weights' type.
  std::function<torch::Tensor(torch::nn::Module& module, const torch::Tensor& images)> answer;
  /// What a training step learns from. Shape: images as above -> [].
  std::function<torch::Tensor(torch::nn::Module& module, const torch::Tensor& images)> loss;
};

/// One that is trained by the cross entropy of its logits.
Network classifier(std::function<std::shared_ptr<Classifier>(torch::Device)> build);

}  // namespace abl::models
