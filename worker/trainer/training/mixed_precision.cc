// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/mixed_precision.h"

#include <torch/utils.h>

#include "models/weights/lowered_weights.h"
#include "models/weights/state.h"

namespace abl::training {
namespace {
constexpr double kStart = 65536, kGrowth = 2, kBackoff = 0.5;
constexpr std::int64_t kInterval = 2000;
}  // namespace

LossScaler::LossScaler(torch::Device device)
    : scale_{torch::full({}, kStart, torch::TensorOptions{torch::kFloat32}.device(device))},
      good_steps_{torch::zeros({}, torch::TensorOptions{torch::kInt32}.device(device))} {}

torch::Tensor LossScaler::unscale(const NamedTensors& weights) {
  const torch::NoGradGuard no_grad;
  const auto gradients = gradients_of(weights);
  auto found = torch::zeros({}, scale_.options());
  at::_amp_foreach_non_finite_check_and_unscale_(gradients, found, scale_.reciprocal());
  at::_amp_update_scale_(scale_, good_steps_, found, kGrowth, kBackoff, kInterval);
  return found;
}

std::map<std::string, torch::Tensor> LossScaler::state() const {
  return {{"scaler.scale", scale_}, {"scaler.good_steps", good_steps_}};
}

MasterWeights::MasterWeights(std::shared_ptr<torch::nn::Module> model, torch::ScalarType type)
    : model_{std::move(model)} {
  std::map<std::string, torch::Tensor> exact;
  if (type != torch::kFloat) {
    for (const auto& parameter : model_->named_parameters())
      exact.emplace(parameter.key(), parameter.value().detach().clone());
    models::lower_weights(*model_, type);
  }
  for (const auto& parameter : model_->named_parameters()) {
    const auto& own = parameter.value();
    const bool is_lowered = own.scalar_type() != torch::kFloat;
    weights_.emplace_back(parameter.key(), is_lowered ? exact.at(parameter.key()) : own);
    if (is_lowered) rounded_.push_back(own), exact_.push_back(weights_.back().second);
  }
}

void MasterWeights::take_gradients() {
  const torch::NoGradGuard no_grad;
  for (std::size_t i = 0; i < rounded_.size(); ++i) {
    auto& gradient = rounded_[i].mutable_grad();
    if (!gradient.defined()) continue;  // the loss does not depend on it
    if (auto& sum = exact_[i].mutable_grad(); sum.defined())
      sum += gradient;
    else
      sum = gradient.to(torch::kFloat);
    gradient = torch::Tensor{};
  }
}

void MasterWeights::publish() {
  const torch::NoGradGuard no_grad;
  if (!rounded_.empty()) at::_foreach_copy_(rounded_, exact_);
}

std::map<std::string, torch::Tensor> MasterWeights::state() const {
  auto state = models::state_of(*model_);
  for (const auto& [name, weight] : weights_) state[name] = weight.detach();
  return state;
}

void MasterWeights::load(const std::map<std::string, torch::Tensor>& state) {
  models::load_state(*model_, state);
  const torch::NoGradGuard no_grad;
  for (const auto& [name, weight] : weights_) weight.detach().copy_(state.at(name));
}

}  // namespace abl::training
