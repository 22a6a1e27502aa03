// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/trial_config.h"

namespace abl::training {

/// Weights by their names in the model, in its order.
using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

/// The gradients of those that have one.
inline std::vector<torch::Tensor> gradients_of(const NamedTensors& weights) {
  std::vector<torch::Tensor> gradients;
  for (const auto& [name, weight] : weights)
    if (weight.grad().defined()) gradients.push_back(weight.grad());
  return gradients;
}

/// Parameters that share their weight decay and the factor of their learning rate.
struct ParameterGroup {
  bool decays = false;
  double lr_factor = 1;
  std::vector<std::string> names;
  std::vector<torch::Tensor> parameters;
};

/// Two groups: what decays by the recipe, and the rest. Where the recipe's learning rate differs from layer
/// to layer, so many of each (`models::layers_of_parameters`). What wants no gradient is in none. `weights`:
/// those of the model, or copies of them.
std::vector<ParameterGroup> parameter_groups(const torch::nn::Module& model, const NamedTensors& weights,
                                             const config::RecipeConfig& recipe);

/// What turns gradients into other weights. Its state lies in tensors of the parameters' names.
class Optimiser {
 public:
  explicit Optimiser(double weight_decay) : weight_decay_{weight_decay} {}
  virtual ~Optimiser() = default;
  /// From now on by so much.
  void decay_by(double weight_decay) { weight_decay_ = weight_decay; }
  /// Applies the gradients that backward passes left, and clears them. A parameter without a gradient stays
  /// as it is. `lr`: as new_rate makes it. `overflow`: [], float32; where it is 1 all stays as it is;
  /// undefined: it never is. Both are read on the device.
  virtual void step(const torch::Tensor& lr, const torch::Tensor& overflow) = 0;
  /// On the CPU, at this learning rate.
  void step(double lr) { step(torch::full({}, lr, torch::kFloat64), {}); }
  /// All that a checkpoint needs, by name: "adamw.first.NAME", … They share memory.
  virtual std::map<std::string, torch::Tensor> state() const = 0;

 protected:
  double decay_of(const ParameterGroup& group) const { return group.decays ? weight_decay_ : 0; }

 private:
  double weight_decay_;
};

/// A learning rate, [], as fused optimisers want it: float32 on a GPU, float64 on the CPU.
torch::Tensor new_rate(torch::Device device);

std::unique_ptr<Optimiser> make_optimiser(const torch::nn::Module& model, const NamedTensors& weights,
                                          const config::RecipeConfig& recipe);

/// Copies what `state` gave into the optimiser. Throws: Error{kDataLoss} when something is missing.
void load_optimiser(Optimiser& optimiser, const std::map<std::string, torch::Tensor>& state);

/// The joint 2-norm of all gradients. []
torch::Tensor gradient_norm(const NamedTensors& weights);

/// Scales all gradients, of this joint norm, so that it is at most `bound`.
void clip_gradients(const NamedTensors& weights, const torch::Tensor& norm, double bound);

/// Scales each gradient so that its own norm is at most `bound`.
/// Source: facebookresearch/dino, utils.py, clip_gradients.
void clip_each_gradient(const NamedTensors& weights, double bound);

/// AdamW in one fused kernel call for each group.
class AdamW final : public Optimiser {
 public:
  AdamW(std::vector<ParameterGroup> groups, const config::RecipeConfig& recipe);
  using Optimiser::step;
  void step(const torch::Tensor& lr, const torch::Tensor& overflow) override;
  std::map<std::string, torch::Tensor> state() const override;

 private:
  struct Group : ParameterGroup {
    std::vector<torch::Tensor> first, second, steps;
  };
  const double beta1_, beta2_, eps_;
  std::vector<Group> groups_;
};

/// Gradient descent with momentum as PyTorch's: weight decay is added to the gradient, the first velocity is
/// the first gradient. One fused kernel call for each group.
///   g ← g + λ w,  v ← μ v + g,  w ← w - η v    (Nesterov: w ← w - η (g + μ v))
class Sgd final : public Optimiser {
 public:
  Sgd(std::vector<ParameterGroup> groups, const config::RecipeConfig& recipe);
  using Optimiser::step;
  void step(const torch::Tensor& lr, const torch::Tensor& overflow) override;
  std::map<std::string, torch::Tensor> state() const override;

 private:
  struct Group : ParameterGroup {
    std::vector<torch::Tensor> velocity;  ///< 0 before the first step, which makes it the gradient
  };
  const double momentum_;
  const bool nesterov_;
  std::vector<Group> groups_;
};

}  // namespace abl::training
