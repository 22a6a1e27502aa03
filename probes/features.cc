// SPDX-License-Identifier: Apache-2.0
#include "probes/features.h"

#include <torch/nn/module.h>

#include <vector>

#include "base/error.h"
#include "base/nearest_name.h"

namespace abl::probes {

FeatureTap::FeatureTap(const torch::nn::Module& model, std::map<std::string, torch::Tensor>& features) {
  std::map<std::string, const torch::nn::Module*> parts;
  for (const auto& part : model.named_modules("", /*include_self=*/false))
    parts.emplace(part.key(), part.value().get());
  for (auto& [name, tensor] : features) {
    if (const auto part = parts.find(name); part != parts.end()) {
      wanted_.emplace(part->second, &tensor);
      continue;
    }
    std::vector<std::string> names;
    for (const auto& [known, module] : parts) names.push_back(known);
    throw Error{Code::kNotFound, "the model has no part '" + name + "'" + did_you_mean(name, names)};
  }
}

void FeatureTap::leave(const torch::nn::Module& part, const torch::Tensor& output) {
  if (const auto wanted = wanted_.find(&part); wanted != wanted_.end()) *wanted->second = output.detach();
}

}  // namespace abl::probes
