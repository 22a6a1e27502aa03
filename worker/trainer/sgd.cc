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
    if (group.weight_decay != 0) at::_foreach_add_(gradients, parameters, group.weight_decay);
    if (momentum_ == 0) velocity.clear();  // as the kernel wants it
    at::_fused_sgd_(parameters, gradients, velocity, /*weight_decay=*/0, momentum_, lr, /*dampening=*/0,
                    nesterov_, /*maximize=*/false, /*is_first_step=*/false, /*grad_scale=*/{}, found);
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
