// SPDX-License-Identifier: Apache-2.0
#include "models/dino/head.h"

#include <memory>

namespace abl::models {

DinoHeadImpl::DinoHeadImpl(std::int64_t in, const DinoHeadOptions& options, torch::Device device) {
  const auto& [prototypes, hidden, bottleneck, has_fixed_norm] = options;
  TORCH_CHECK_VALUE(in > 0 && prototypes > 0 && hidden > 0 && bottleneck > 0, "a head of ", in, ", ", hidden,
                    ", ", bottleneck, " and ", prototypes, " channels; all must be positive");
  auto mlp = register_module("mlp", std::make_shared<torch::nn::Module>());
  first_ = mlp->register_module("0", Linear{in, hidden, device});
  second_ = mlp->register_module("2", Linear{hidden, hidden, device});
  third_ = mlp->register_module("4", Linear{hidden, bottleneck, device});
  if (is_started(device)) start_linear_layers(*this);
  auto last = register_module("last_layer", std::make_shared<torch::nn::Module>());
  weight_g_ = last->register_parameter("weight_g", new_constant({prototypes, 1}, 1, device));
  weight_g_.requires_grad_(!has_fixed_norm);
  weight_v_ = last->register_parameter("weight_v", new_weight({prototypes, bottleneck}, device));
}

torch::Tensor DinoHeadImpl::forward(const torch::Tensor& x) {
  const auto z = third_(torch::gelu(second_(torch::gelu(first_(x)))));
  const auto unit = z / z.norm(2, /*dim=*/{-1}, /*keepdim=*/true).clamp_min(1e-12);
  return torch::linear(unit, torch::_weight_norm(weight_v_, weight_g_, /*dim=*/0));
}

}  // namespace abl::models
