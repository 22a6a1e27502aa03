// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <map>
#include <string>

#include "models/layers/part.h"

namespace abl::probes {

/// Keeps what named parts of a model return, while it lives and on its thread: the keys of `features` are
/// names as `named_modules` gives them ("blocks.0.attn"), their tensors are filled in.
/// Throws: Error{kNotFound} naming the part and the nearest name, when the model has none of that name.
class FeatureTap final : public models::Observer {
 public:
  FeatureTap(const torch::nn::Module& model, std::map<std::string, torch::Tensor>& features);

  void enter(const torch::nn::Module&) override {}
  void leave(const torch::nn::Module& part, const torch::Tensor& output) override;

 private:
  std::map<const torch::nn::Module*, torch::Tensor*> wanted_;
  const models::Observation observation_{*this};
};

}  // namespace abl::probes
