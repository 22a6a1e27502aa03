// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/sgd.h"

namespace abl::trainer {

Sgd::Sgd(std::vector<ParameterGroup> groups, const config::RecipeConfig& recipe)
    : momentum_{recipe.momentum}, nesterov_{recipe.nesterov} {
  for (auto& given : groups) {
    auto& group = groups_.emplace_back(Group{std::move(given), {}});
    for (const auto& parameter : group.parameters) group.velocity.push_back(torch::zeros_like(parameter));
  }
}

void Sgd::step(double lr) {
  const torch::NoGradGuard no_grad;
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
    if (group.weight_decay != 0) at::_foreach_add_(gradients, parameters, group.weight_decay);
    at::_foreach_mul_(velocity, momentum_);
    at::_foreach_add_(velocity, gradients);
    if (nesterov_) {
      at::_foreach_add_(gradients, velocity, momentum_);
      at::_foreach_add_(parameters, gradients, -lr);
    } else {
      at::_foreach_add_(parameters, velocity, -lr);
    }
  }
}

std::map<std::string, torch::Tensor> Sgd::state() const {
  std::map<std::string, torch::Tensor> state;
  for (const auto& group : groups_)
    for (std::size_t i = 0; i < group.names.size(); ++i)
      state["sgd.velocity." + group.names[i]] = group.velocity[i];
  return state;
}

}  // namespace abl::trainer
