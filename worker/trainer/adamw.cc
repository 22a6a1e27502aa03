// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/adamw.h"

namespace abl::trainer {

AdamW::AdamW(std::vector<ParameterGroup> groups, const config::RecipeConfig& recipe)
    : beta1_{recipe.beta1}, beta2_{recipe.beta2}, eps_{recipe.eps} {
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
    at::_fused_adamw_(parameters, gradients, first, second, {}, steps, lr, beta1_, beta2_, group.weight_decay,
                      eps_, /*amsgrad=*/false, /*maximize=*/false, /*grad_scale=*/{}, found);
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

}  // namespace abl::trainer
