// SPDX-License-Identifier: Apache-2.0
#include "models/counting/parameters.h"

#include <set>

#include "models/layers/part.h"

namespace abl::models {

std::vector<ParameterEntry> list_parameters(const torch::nn::Module& model) {
  std::set<const void*> weights;
  for (const auto& module : model.modules())
    if (const auto* owner = dynamic_cast<const WeightOwner*>(module.get()))
      for (const auto& weight : owner->weights()) weights.insert(weight.unsafeGetTensorImpl());

  std::vector<ParameterEntry> entries;
  for (const auto& parameter : model.named_parameters()) {
    const auto& tensor = parameter.value();
    entries.push_back({.name = parameter.key(),
                       .shape = tensor.sizes().vec(),
                       .elements = tensor.numel(),
                       .is_weight = weights.contains(tensor.unsafeGetTensorImpl())});
  }
  return entries;
}

}  // namespace abl::models
