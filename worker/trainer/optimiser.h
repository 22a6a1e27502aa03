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
  /// Applies the gradients that backward passes left, and clears them. A parameter without a gradient stays
  /// as it is. `lr`: as new_rate makes it. `overflow`: [], float32; where it is 1 all stays as it is;
  /// undefined: it never is. Both are read on the device.
  virtual void step(const torch::Tensor& lr, const torch::Tensor& overflow) = 0;
  /// On the CPU, at this learning rate.
  void step(double lr) { step(torch::full({}, lr, torch::kFloat64), {}); }
  /// All that a checkpoint needs, by name: "adamw.first.NAME", … They share memory.
  virtual std::map<std::string, torch::Tensor> state() const = 0;
};

/// A learning rate, [], as fused optimisers want it: float32 on a GPU, float64 on the CPU.
torch::Tensor new_rate(torch::Device device);

std::unique_ptr<Optimiser> make_optimiser(const torch::nn::Module& model, const NamedTensors& weights,
                                          const config::RecipeConfig& recipe);

/// Copies what `state` gave into the optimiser. Throws: Error{kDataLoss} when something is missing.
void load_optimiser(Optimiser& optimiser, const std::map<std::string, torch::Tensor>& state);

/// Scales all gradients so that their joint 2-norm is at most `bound`.
void clip_gradients(const NamedTensors& weights, double bound);

}  // namespace abl::trainer
