// SPDX-License-Identifier: Apache-2.0
#include "models/attention/window_key_attention.h"

namespace abl::models {

WindowKeyAttentionImpl::WindowKeyAttentionImpl(const WindowAttentionOptions& options, const KeyChoice& choice,
                                               torch::Device device)
    : BiasedWindowAttentionImpl{options, device} {
  const auto dim = options_.dim;
  qv_ = register_module("qv", Linear{dim, 2 * dim, device});
  key_ = register_module(
      "key",
      ManifoldKey{ManifoldKeyOptions{.dim = dim, .tokens = options_.tokens(), .choice = choice}, device});
  proj_ = register_module("proj", Linear{dim, dim, device});
}

torch::Tensor WindowKeyAttentionImpl::forward(const torch::Tensor& x, const torch::Tensor& mask) {
  const auto qv = qv_(x).chunk(2, -1);
  const auto heads = options_.heads;
  const auto q = cut_heads(qv[0], heads), v = cut_heads(qv[1], heads);
  return proj_(attend(Kernel::kDot, q, cut_heads(key_(x).to(q.scalar_type()), heads), v, mask));
}

}  // namespace abl::models
