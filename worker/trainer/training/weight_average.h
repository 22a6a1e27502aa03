// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <map>
#include <memory>
#include <string>

namespace abl::training {

/// A model whose weights follow those of another as a running average.
///   w̄ ← w̄ + (1 - decay) (w - w̄)
/// The statistics of batch normalisation are averaged too; counts are copied.
class WeightAverage {
 public:
  /// `average`: built as the model that it follows; `state`: of that one, with which it starts.
  WeightAverage(std::shared_ptr<torch::nn::Module> average, const std::map<std::string, torch::Tensor>& state,
                double decay);
  void follow(const std::map<std::string, torch::Tensor>& state);

  torch::nn::Module& model() { return *average_; }
  /// By name, "ema.NAME"; they share memory.
  std::map<std::string, torch::Tensor> state() const;
  /// Throws: Error{kInvalidArgument} when something is missing.
  void load(const std::map<std::string, torch::Tensor>& state);

 private:
  const std::shared_ptr<torch::nn::Module> average_;
  const double decay_;
};

}  // namespace abl::training
