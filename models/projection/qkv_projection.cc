// SPDX-License-Identifier: Apache-2.0
#include "models/projection/qkv_projection.h"

namespace abl::models {

QkvProjection::QkvProjection(torch::nn::Module& owner, const QkvOptions& options, torch::Device device) {
  if (!options.embedding) {
    linear_ = owner.register_module("qkv", Linear{options.dim, 3 * options.dim, device, options.bias});
    return;
  }
  const auto& choice = *options.embedding;
  check(choice);
  Codes codes{nullptr};
  if (choice.code_size > 0)
    codes = choice.codes_over_blocks ? options.codes : owner.register_module("codes", Codes{choice, device});
  embedding_ = owner.register_module("qkv", NonLinearQkv{options.dim, choice, codes, device});
}

void check_heads(std::int64_t dim, std::int64_t heads) {
  TORCH_CHECK_VALUE(dim > 0 && heads > 0 && dim % heads == 0, "heads is ", heads, "; a divisor of the width ",
                    dim, " is expected");
}

}  // namespace abl::models
