// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/optimiser.h"

#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "models/weights/layers_of_parameters.h"
#include "models/weights/weight_decay.h"

namespace abl::training {

AdamW::AdamW(std::vector<ParameterGroup> groups, const config::RecipeConfig& recipe)
    : Optimiser{recipe.weight_decay}, beta1_{recipe.beta1}, beta2_{recipe.beta2}, eps_{recipe.eps} {
  for (auto& given : groups) {
    auto& group = groups_.emplace_back(Group{std::move(given), {}, {}, {}});
    for (const auto& parameter : group.parameters) {
      group.first.push_back(torch::zeros_like(parameter));
      group.second.push_back(torch::zeros_like(parameter));
      group.steps.push_back(
          torch::zeros({}, torch::TensorOptions{torch::kFloat32}.device(parameter.device())));
    }
  }
}

namespace {

/// Of the learning rate, in which all groups have a part. A tensor: nothing waits for the device.
torch::Tensor rate_of(const ParameterGroup& group, const torch::Tensor& lr) {
  return group.lr_factor == 1 ? lr : lr * group.lr_factor;
}

}  // namespace

void AdamW::step(const torch::Tensor& lr, const torch::Tensor& overflow) {
  const torch::NoGradGuard no_grad;
  const auto found = overflow.defined() ? std::optional{overflow} : std::nullopt;
  for (auto& group : groups_) {
    std::vector<torch::Tensor> parameters, gradients, first, second, steps;
    for (std::size_t i = 0; i < group.parameters.size(); ++i) {
      auto& gradient = group.parameters[i].mutable_grad();
      if (!gradient.defined()) continue;  // a parameter that the loss does not depend on
      parameters.push_back(group.parameters[i]), gradients.push_back(gradient);
      first.push_back(group.first[i]), second.push_back(group.second[i]), steps.push_back(group.steps[i]);
      gradient = torch::Tensor{};
    }
    if (parameters.empty()) continue;
    at::_foreach_add_(steps, 1);
    at::_fused_adamw_(parameters, gradients, first, second, {}, steps, rate_of(group, lr), beta1_, beta2_,
                      decay_of(group), eps_, /*amsgrad=*/false, /*maximize=*/false, /*grad_scale=*/{}, found);
    if (found) at::_foreach_sub_(steps, std::vector<torch::Tensor>(steps.size(), *found));
  }
}

std::map<std::string, torch::Tensor> AdamW::state() const {
  std::map<std::string, torch::Tensor> state;
  for (const auto& group : groups_)
    for (std::size_t i = 0; i < group.names.size(); ++i) {
      state["adamw.first." + group.names[i]] = group.first[i];
      state["adamw.second." + group.names[i]] = group.second[i];
      state["adamw.step." + group.names[i]] = group.steps[i];
    }
  return state;
}

std::vector<ParameterGroup> parameter_groups(const torch::nn::Module& model, const NamedTensors& weights,
                                             const config::RecipeConfig& recipe) {
  const auto exempt = models::undecayed(model);
  const auto decays = [&](const std::string& name) {
    switch (recipe.decay) {
      case config::Decay::kAll:
        return true;
      case config::Decay::kMatricesNotCodes:
        return !models::is_code(name) && !exempt.contains(name);
      case config::Decay::kMatrices:
        break;
    }
    return !exempt.contains(name);
  };
  const bool by_layer = recipe.layer_decay != 1 || recipe.head_lr != 1;
  const auto layers = by_layer ? models::layers_of_parameters(model) : std::map<std::string, int>{};
  int last = 0;
  for (const auto& [name, layer] : layers) last = std::max(last, layer);
  std::vector<ParameterGroup> groups(2 * static_cast<std::size_t>(last + 1));
  for (std::size_t at = 0; at < groups.size(); ++at) {
    groups[at].decays = at % 2 == 0;
    const int below = last - static_cast<int>(at / 2);  // so many layers below the head
    groups[at].lr_factor = below == 0 ? recipe.head_lr : std::pow(recipe.layer_decay, below);
  }
  std::set<std::string> still;
  for (const auto& parameter : model.named_parameters())
    if (!parameter.value().requires_grad()) still.insert(parameter.key());
  for (const auto& [name, weight] : weights) {
    if (still.contains(name)) continue;
    const int layer = by_layer ? layers.at(name) : 0;
    auto& group = groups[2 * static_cast<std::size_t>(layer) + (decays(name) ? 0 : 1)];
    group.names.push_back(name);
    group.parameters.push_back(weight);
  }
  return groups;
}

torch::Tensor new_rate(torch::Device device) {
  return torch::zeros({}, torch::dtype(device.is_cpu() ? torch::kFloat64 : torch::kFloat32).device(device));
}

std::unique_ptr<Optimiser> make_optimiser(const torch::nn::Module& model, const NamedTensors& weights,
                                          const config::RecipeConfig& recipe) {
  auto groups = parameter_groups(model, weights, recipe);
  switch (recipe.optimiser) {
    case config::Optimiser::kSgd:
      return std::make_unique<Sgd>(std::move(groups), recipe);
    case config::Optimiser::kAdamW:
      break;
  }
  return std::make_unique<AdamW>(std::move(groups), recipe);
}

void load_optimiser(Optimiser& optimiser, const std::map<std::string, torch::Tensor>& state) {
  const torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : optimiser.state()) {
    const auto found = state.find(name);
    if (found == state.end() || found->second.sizes() != tensor.sizes())
      throw Error{Code::kDataLoss, "the checkpoint has no matching " + name};
    tensor.copy_(found->second);
  }
}

torch::Tensor gradient_norm(const NamedTensors& weights) {
  const torch::NoGradGuard no_grad;
  const auto gradients = gradients_of(weights);
  if (gradients.empty()) return torch::zeros({}, weights.at(0).second.options().requires_grad(false));
  return torch::stack(at::_foreach_norm(gradients, 2)).norm();
}

void clip_gradients(const NamedTensors& weights, const torch::Tensor& norm, double bound) {
  const torch::NoGradGuard no_grad;
  const auto gradients = gradients_of(weights);
  if (gradients.empty()) return;
  at::_foreach_mul_(gradients,
                    (bound / (norm + 1e-6)).clamp_max(1.0));  // a tensor: nothing waits for the device
}

void clip_each_gradient(const NamedTensors& weights, double bound) {
  const torch::NoGradGuard no_grad;
  const auto gradients = gradients_of(weights);
  if (gradients.empty()) return;
  auto factors = at::_foreach_norm(gradients, 2);
  for (auto& factor : factors) factor = (bound / (factor + 1e-6)).clamp_max(1.0);
  at::_foreach_mul_(gradients, factors);
}

Sgd::Sgd(std::vector<ParameterGroup> groups, const config::RecipeConfig& recipe)
    : Optimiser{recipe.weight_decay}, momentum_{recipe.momentum}, nesterov_{recipe.nesterov} {
  for (auto& given : groups) {
    auto& group = groups_.emplace_back(Group{std::move(given), {}});
    for (const auto& parameter : group.parameters) group.velocity.push_back(torch::zeros_like(parameter));
  }
}

void Sgd::step(const torch::Tensor& lr, const torch::Tensor& overflow) {
  const torch::NoGradGuard no_grad;
  const auto found = overflow.defined() ? std::optional{overflow} : std::nullopt;
  for (auto& group : groups_) {
    std::vector<torch::Tensor> parameters, gradients, velocity;
    for (std::size_t i = 0; i < group.parameters.size(); ++i) {
      auto& gradient = group.parameters[i].mutable_grad();
      if (!gradient.defined()) continue;  // a parameter that the loss does not depend on
      parameters.push_back(group.parameters[i]), gradients.push_back(gradient);
      velocity.push_back(group.velocity[i]);
      gradient = torch::Tensor{};
    }
    if (parameters.empty()) continue;
    if (const double decay = decay_of(group); decay != 0) at::_foreach_add_(gradients, parameters, decay);
    if (momentum_ == 0) velocity.clear();  // as the kernel wants it
    at::_fused_sgd_(parameters, gradients, velocity, /*weight_decay=*/0, momentum_, rate_of(group, lr),
                    /*dampening=*/0, nesterov_, /*maximize=*/false, /*is_first_step=*/false,
                    /*grad_scale=*/{}, found);
  }
}

std::map<std::string, torch::Tensor> Sgd::state() const {
  std::map<std::string, torch::Tensor> state;
  for (const auto& group : groups_)
    for (std::size_t i = 0; i < group.names.size(); ++i)
      state["sgd.velocity." + group.names[i]] = group.velocity[i];
  return state;
}

}  // namespace abl::training
