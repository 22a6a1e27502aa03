// SPDX-License-Identifier: Apache-2.0
#include "models/weights/lowered_weights.h"

#include <torch/utils.h>

#include "models/layers/layers.h"

namespace abl::models {
namespace {

/// set_data: the module's own members see it, for it is the same tensor.
void round(torch::Tensor tensor, torch::ScalarType type) {
  if (tensor.is_floating_point()) tensor.set_data(tensor.to(type));
}

}  // namespace

void lower_weights(torch::nn::Module& model, torch::ScalarType type) {
  const torch::NoGradGuard no_grad;
  if (model.as<BatchNorm2dImpl>() || model.as<FixedTableImpl>() || model.as<RunningMeanImpl>()) return;
  if (dynamic_cast<const FullPrecision*>(&model)) return;
  for (auto& parameter : model.parameters(/*recurse=*/false)) round(parameter, type);
  for (auto& buffer : model.buffers(/*recurse=*/false)) round(buffer, type);
  for (const auto& part : model.children()) lower_weights(*part, type);
}

torch::ScalarType weight_type(const torch::nn::Module& model) {
  auto narrowest = torch::kDouble;
  for (const auto& parameter : model.parameters())
    if (parameter.element_size() < static_cast<std::int64_t>(torch::elementSize(narrowest)))
      narrowest = parameter.scalar_type();
  return narrowest;
}

}  // namespace abl::models
