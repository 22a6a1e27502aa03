// SPDX-License-Identifier: Apache-2.0
#include "models/layers/mlp.h"

namespace abl::models {

FeedForwardImpl::FeedForwardImpl(std::int64_t dim, std::int64_t hidden, torch::Device device) {
  norm = register_module("norm", LayerNorm{dim, device});
  fc1 = register_module("fc1", Linear{dim, hidden, device});
  fc2 = register_module("fc2", Linear{hidden, dim, device});
}

torch::Tensor FeedForwardImpl::forward(const torch::Tensor& x) { return fc2(torch::gelu(fc1(norm(x)))); }

MlpImpl::MlpImpl(std::int64_t dim, std::int64_t hidden, torch::Device device) {
  fc1_ = register_module("fc1", Linear{dim, hidden, device});
  fc2_ = register_module("fc2", Linear{hidden, dim, device});
}

torch::Tensor MlpImpl::forward(const torch::Tensor& x) { return fc2_(torch::gelu(fc1_(x))); }

}  // namespace abl::models
