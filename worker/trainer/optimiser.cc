// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/optimiser.h"

#include "base/error.h"
#include "models/weight_decay.h"
#include "worker/trainer/adamw.h"
#include "worker/trainer/sgd.h"

namespace abl::trainer {

std::vector<ParameterGroup> parameter_groups(const torch::nn::Module& model, const NamedTensors& weights,
                                             const config::RecipeConfig& recipe) {
  const auto exempt = models::undecayed(model);
  const auto decays = [&](const std::string& name) {
    if (recipe.decay == "all") return true;
    if (recipe.decay == "matrices-not-codes" && models::is_code(name)) return false;
    return !exempt.contains(name);
  };
  std::vector<ParameterGroup> groups(2);
  groups[0].weight_decay = recipe.weight_decay;
  for (const auto& [name, weight] : weights) {
    auto& group = groups[decays(name) ? 0 : 1];
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
  if (recipe.optimiser == "sgd") return std::make_unique<Sgd>(std::move(groups), recipe);
  return std::make_unique<AdamW>(std::move(groups), recipe);
}

void load_optimiser(Optimiser& optimiser, const std::map<std::string, torch::Tensor>& state) {
  const torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : optimiser.state()) {
    const auto found = state.find(name);
    if (found == state.end() || found->second.sizes() != tensor.sizes())
      throw Error{Code::kDataLoss, "the checkpoint has no fitting " + name};
    tensor.copy_(found->second);
  }
}

void clip_gradients(const NamedTensors& weights, double bound) {
  const torch::NoGradGuard no_grad;
  const auto gradients = gradients_of(weights);
  if (gradients.empty()) return;
  const auto norm = torch::stack(at::_foreach_norm(gradients, 2)).norm();
  at::_foreach_mul_(gradients,
                    (bound / (norm + 1e-6)).clamp_max(1.0));  // a tensor: nothing waits for the device
}

}  // namespace abl::trainer
