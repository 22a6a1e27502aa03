// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/adamw.h"

#include "base/error.h"

namespace abl::trainer {

AdamW::AdamW(const torch::nn::Module& model, const config::RecipeConfig& recipe)
    : recipe_{recipe}, groups_(2) {
  groups_[0].weight_decay = recipe.weight_decay;
  for (const auto& item : model.named_parameters()) {
    const auto& parameter = item.value();
    auto& group = groups_[parameter.dim() >= 2 ? 0 : 1];
    group.names.push_back(item.key());
    group.parameters.push_back(parameter);
    group.first.push_back(torch::zeros_like(parameter));
    group.second.push_back(torch::zeros_like(parameter));
    group.steps.push_back(torch::zeros({}, torch::TensorOptions{torch::kFloat32}.device(parameter.device())));
  }
}

void AdamW::step(double lr) {
  const torch::NoGradGuard no_grad;
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
    at::_fused_adamw_(parameters, gradients, first, second, {}, steps, lr, recipe_.beta1, recipe_.beta2,
                      group.weight_decay, recipe_.eps, /*amsgrad=*/false, /*maximize=*/false);
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

void AdamW::load(const std::map<std::string, torch::Tensor>& state) {
  const torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : this->state()) {
    const auto found = state.find(name);
    if (found == state.end() || found->second.sizes() != tensor.sizes())
      throw Error{Code::kDataLoss, "the checkpoint has no fitting " + name};
    tensor.copy_(found->second);
  }
}

void clip_gradients(const torch::nn::Module& model, double bound) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> gradients;
  for (const auto& parameter : model.parameters())
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  if (gradients.empty()) return;
  const auto norm = torch::stack(at::_foreach_norm(gradients, 2)).norm();
  at::_foreach_mul_(gradients,
                    (bound / (norm + 1e-6)).clamp_max(1.0));  // a tensor: nothing waits for the device
}

}  // namespace abl::trainer
