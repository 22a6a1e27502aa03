// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/trainer/optimiser.h"

namespace abl::trainer {

/// AdamW in one fused kernel call for each group.
class AdamW final : public Optimiser {
 public:
  AdamW(std::vector<ParameterGroup> groups, const config::RecipeConfig& recipe);
  using Optimiser::step;
  void step(const torch::Tensor& lr, const torch::Tensor& overflow) override;
  std::map<std::string, torch::Tensor> state() const override;

 private:
  struct Group : ParameterGroup {
    std::vector<torch::Tensor> first, second, steps;
  };
  const double beta1_, beta2_, eps_;
  std::vector<Group> groups_;
};

}  // namespace abl::trainer
