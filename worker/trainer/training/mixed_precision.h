// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "worker/trainer/training/optimiser.h"

namespace abl::training {

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

/// The weights that an optimiser moves, in float32. Of a model that computes in bfloat16 they are copies: the
/// model has them rounded, once a step, and its gradients come back widened. Otherwise they are its own.
/// Source: Micikevicius et al., "Mixed precision training" (2018), section 3.1.
class MasterWeights {
 public:
  /// Lowers the model's weights where `type` is not float32.
  MasterWeights(std::shared_ptr<torch::nn::Module> model, torch::ScalarType type);

  const NamedTensors& weights() const { return weights_; }
  /// Whether they are copies, of a model that computes with rounded ones.
  bool are_copies() const { return !rounded_.empty(); }
  /// Moves the model's gradients here, in float32, and adds them to those that came before: what the parts of
  /// a batch leave is never added up in the model's own type.
  void take_gradients();
  /// Gives the model the weights, rounded.
  void publish();

  /// The model's state in full precision, by its names, with the statistics of batch normalisation. They
  /// share memory.
  std::map<std::string, torch::Tensor> state() const;
  /// Throws: Error{kInvalidArgument} listing what is missing or has another shape.
  void load(const std::map<std::string, torch::Tensor>& state);

 private:
  const std::shared_ptr<torch::nn::Module> model_;
  NamedTensors weights_;
  std::vector<torch::Tensor> rounded_, exact_;  ///< the model's own and ours, where they are two
};

}  // namespace abl::training
