// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/trial_config.h"
#include "worker/trainer/named_tensors.h"

namespace abl::trainer {

/// Parameters that share their weight decay.
struct ParameterGroup {
  double weight_decay = 0;
  std::vector<std::string> names;
  std::vector<torch::Tensor> parameters;
};

/// Two groups: what decays by the recipe, and the rest. `weights`: those of the model, or copies of them.
std::vector<ParameterGroup> parameter_groups(const torch::nn::Module& model, const NamedTensors& weights,
                                             const config::RecipeConfig& recipe);

/// What turns gradients into other weights. Its state lies in tensors of the parameters' names.
class Optimiser {
 public:
  virtual ~Optimiser() = default;
  /// Applies the gradients that backward passes left, at learning rate `lr`, and clears them. A parameter
  /// without a gradient stays as it is.
  virtual void step(double lr) = 0;
  /// All that a checkpoint needs, by name: "adamw.first.NAME", … They share memory.
  virtual std::map<std::string, torch::Tensor> state() const = 0;
};

std::unique_ptr<Optimiser> make_optimiser(const torch::nn::Module& model, const NamedTensors& weights,
                                          const config::RecipeConfig& recipe);

/// Copies what `state` gave into the optimiser. Throws: Error{kDataLoss} when something is missing.
void load_optimiser(Optimiser& optimiser, const std::map<std::string, torch::Tensor>& state);

/// Scales all gradients so that their joint 2-norm is at most `bound`.
void clip_gradients(const NamedTensors& weights, double bound);

}  // namespace abl::trainer
