// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/loss_scaler.h"

namespace abl::trainer {
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

}  // namespace abl::trainer
