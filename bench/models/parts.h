// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace abl::bench {

/// A part of models/ that is timed, with what it is given.
struct Subject {
  std::shared_ptr<torch::nn::Module> module;
  torch::Tensor input;
  std::function<torch::Tensor(const torch::Tensor&)> forward;
};

/// By name; those of bench/models/python_parts.py. Sizes are ViT-S's (384 wide, 6 heads, 196 tokens),
/// XCiT-T12's, those of the first stage of Swin-T and SwinV2-T, and of one stage of each convolutional
/// network.
const std::map<std::string, std::function<Subject()>>& parts();

}  // namespace abl::bench
