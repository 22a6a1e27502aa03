// SPDX-License-Identifier: Apache-2.0
#include "models/feed_forward.h"

namespace abl::models {

FeedForwardImpl::FeedForwardImpl(std::int64_t dim, std::int64_t hidden, torch::Device device) {
  norm = register_module("norm", LayerNorm{dim, device});
  fc1 = register_module("fc1", Linear{dim, hidden, device});
  fc2 = register_module("fc2", Linear{hidden, dim, device});
}

torch::Tensor FeedForwardImpl::forward(const torch::Tensor& x) { return fc2(torch::gelu(fc1(norm(x)))); }

}  // namespace abl::models
