// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/classifier.h"

#include <torch/utils.h>

#include "models/layers/layers.h"

namespace abl::models {
namespace {

/// Gives every tensor of `copies` the contents of the one of the same name. `set_data`: the parts' own
/// members are the same tensors, and take another type with it.
template <class Named>
void take_over(Named copies, const Named& originals, torch::Device device) {
  const torch::NoGradGuard no_grad;
  for (auto& copy : copies) {
    const auto& original = originals[copy.key()];
    copy.value().set_data(original.detach().to(device, original.scalar_type(), /*non_blocking=*/false,
                                               /*copy=*/true));
    copy.value().set_requires_grad(original.requires_grad());
  }
}

}  // namespace

std::shared_ptr<torch::nn::Module> Classifier::clone(const std::optional<torch::Device>& device) const {
  const auto parameters = named_parameters();
  const auto place = device.value_or(parameters.is_empty() ? torch::Device{torch::kCPU}
                                                           : parameters.begin()->value().device());
  const auto copy = [&] {
    const StartNothing unfilled;
    return another(place);
  }();
  take_over(copy->named_parameters(), parameters, place);
  take_over(copy->named_buffers(), named_buffers(), place);
  const auto from = modules(),
             to = copy->modules();  // parents before their children, so a child's mode stays
  for (std::size_t i = 0; i < from.size(); ++i) {
    to[i]->train(from[i]->is_training());
    if (const auto* norm = from[i]->as<BatchNorm2dImpl>())
      to[i]->as<BatchNorm2dImpl>()->sum_over_ranks(norm->sum());
  }
  return copy;
}

std::shared_ptr<Classifier> Classifier::another(torch::Device) const {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "clone() of a ", name(), ": it does not override another()");
}

std::vector<Classifier*> classifiers_in(torch::nn::Module& network) {
  if (auto* own = dynamic_cast<Classifier*>(&network)) return {own};
  std::vector<Classifier*> all;
  for (const auto& part : network.children()) {
    const auto inside = classifiers_in(*part);
    all.insert(all.end(), inside.begin(), inside.end());
  }
  return all;
}

}  // namespace abl::models
