// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include <map>
#include <string>
#include <vector>

#include "config/trial_config.h"

namespace abl::trainer {

/// AdamW in one fused kernel call for each group: matrices with weight decay, everything else (norms, biases)
/// without.
class AdamW {
 public:
  AdamW(const torch::nn::Module& model, const config::RecipeConfig& recipe);

  /// Applies the gradients that the last backward pass left, at learning rate `lr`, and clears them.
  void step(double lr);

  /// Moments and step counters by parameter name ("adamw.first.NAME", …): all that a checkpoint needs. They
  /// share memory.
  std::map<std::string, torch::Tensor> state() const;
  /// Copies what `state` gave. Throws: Error{kDataLoss} when something is missing.
  void load(const std::map<std::string, torch::Tensor>& state);

 private:
  struct Group {
    double weight_decay = 0;
    std::vector<std::string> names;
    std::vector<torch::Tensor> parameters, first, second, steps;
  };
  const config::RecipeConfig recipe_;
  std::vector<Group> groups_;
};

/// Scales all gradients so that their joint 2-norm is at most `bound`.
void clip_gradients(const torch::nn::Module& model, double bound);

}  // namespace abl::trainer
