// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/classifier.h"
#include "worker/trainer/named_tensors.h"

namespace abl::trainer {

/// The weights that an optimiser moves, in float32. Of a model that computes in bfloat16 they are copies: the
/// model has them rounded, once a step, and its gradients come back widened. Otherwise they are its own.
/// Source: Micikevicius et al., "Mixed precision training" (2018), section 3.1.
class MasterWeights {
 public:
  /// Lowers the model's weights where `type` is not float32.
  MasterWeights(std::shared_ptr<models::Classifier> model, torch::ScalarType type);

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
  const std::shared_ptr<models::Classifier> model_;
  NamedTensors weights_;
  std::vector<torch::Tensor> rounded_, exact_;  ///< the model's own and ours, where they are two
};

}  // namespace abl::trainer
