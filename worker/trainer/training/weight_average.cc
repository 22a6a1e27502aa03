// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/weight_average.h"

#include <torch/utils.h>

#include "models/weights/state.h"

namespace abl::training {

WeightAverage::WeightAverage(std::shared_ptr<torch::nn::Module> average,
                             const std::map<std::string, torch::Tensor>& state, double decay)
    : average_{std::move(average)}, decay_{decay} {
  models::load_state(*average_, state);
  for (auto& parameter : average_->parameters()) parameter.requires_grad_(false);
}

void WeightAverage::follow(const std::map<std::string, torch::Tensor>& state) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> averages, values;
  for (auto& [name, average] : models::state_of(*average_)) {
    if (average.is_floating_point())
      averages.push_back(average), values.push_back(state.at(name));
    else
      average.copy_(state.at(name));
  }
  at::_foreach_lerp_(averages, values, 1 - decay_);
}

std::map<std::string, torch::Tensor> WeightAverage::state() const {
  std::map<std::string, torch::Tensor> state;
  for (const auto& [name, tensor] : models::state_of(*average_)) state["ema." + name] = tensor;
  return state;
}

void WeightAverage::load(const std::map<std::string, torch::Tensor>& state) {
  std::map<std::string, torch::Tensor> weights;
  for (const auto& [name, tensor] : state)
    if (name.starts_with("ema.")) weights.emplace(name.substr(4), tensor);
  models::load_state(*average_, weights);
}

}  // namespace abl::training
