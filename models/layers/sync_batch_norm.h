// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <functional>

namespace abl::models {

/// Replaces a tensor by its sum over all processes that train one model together. Every one calls it, in the
/// same order. Where it is empty a process is alone.
using SumOverRanks = std::function<void(torch::Tensor&)>;

/// What a batch normalisation learns and follows.
struct BatchNormTensors {
  torch::Tensor weight, bias;               ///< [C]
  torch::Tensor running_mean, running_var;  ///< [C]; undefined: the statistics are not followed
};

/// Batch normalisation in training by the statistics of all processes' batches taken as one, however many
/// images each has; so are its gradients.
///   x̂ = (x - µ) / √(σ² + ε),  y = w x̂ + b
///   dx = w / √(σ² + ε) · (dy - mean(dy) - x̂ mean(dy x̂)), all means over all processes
/// The gradients of w and b are those of this process's images, as of every other parameter.
/// Shape: x [B, C, H, W] -> the same.
/// Throws: c10::ValueError where all batches together have one value for each channel.
torch::Tensor sync_batch_norm(const torch::Tensor& x, const BatchNormTensors& tensors, double momentum,
                              double eps, const SumOverRanks& sum);

/// Lets every batch normalisation of a model do so.
void synchronise_batch_norms(torch::nn::Module& model, const SumOverRanks& sum);

}  // namespace abl::models
