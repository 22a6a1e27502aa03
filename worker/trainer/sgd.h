// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/trainer/optimiser.h"

namespace abl::trainer {

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

}  // namespace abl::trainer
